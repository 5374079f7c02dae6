package import HTTPServer
package import SyncProtocol

/// Where streams get their buckets from: the storage, or a script in a test.
///
/// Every answer is one snapshot of the database, and names the tick that it shows.
package protocol StreamSource: Sendable {
  /// The buckets that a request may see, and what was consulted to say so.
  func view(of request: ViewRequest) async throws -> StreamView

  /// For each position, whether the database's surviving history contains it.
  func survival(of positions: [SyncPosition]) async throws -> [Bool]

  /// One page of a bucket, encoded; nil when there is no memory for it now: to be asked again.
  func page(_ request: StreamSession.StateMachine.PageRequest) async throws -> EncodedPage?

  /// One page of a bucket as the body of an answer; `end` is its position when nothing remains. Nil when
  /// there is no memory for it now.
  func rows(
    _ request: StreamSession.StateMachine.PageRequest, limit: Int, end: SyncPosition
  ) async throws -> RowsBody?

  /// What happened after a tick: the changes of the buckets that somebody follows, encoded; nil when the
  /// history no longer reaches back to that tick.
  func changes(after tick: TickFacts, following: FollowedBuckets) async throws -> SourceChanges?

  /// The tick in force.
  func head() async throws -> TickFacts

  /// The tables of the replicas, as they are in the rules in force.
  func schema() async throws -> PublishedSchema
}

/// On whose behalf buckets are asked for, and with which parameters.
package struct ViewRequest: Sendable, Equatable {
  /// The verified payload of the token.
  package var claimsJSON: String
  package var parametersJSON: String
  package var subscriptions: [StreamSubscription]
  package var includeDefaults: Bool

  package init(
    claimsJSON: String, parametersJSON: String = "{}", subscriptions: [StreamSubscription] = [],
    includeDefaults: Bool = true
  ) {
    self.claimsJSON = claimsJSON
    self.parametersJSON = parametersJSON
    self.subscriptions = subscriptions
    self.includeDefaults = includeDefaults
  }
}

/// One key of one materialised parameter query.
package struct LookupKey: Hashable, Sendable {
  package var lookup: Int64
  /// A JSON array, compared byte by byte like a bucket's name.
  package var key: BucketName

  package init(lookup: Int64, key: BucketName) {
    self.lookup = lookup
    self.key = key
  }
}

/// What a request may see at one tick.
package struct StreamView: Sendable, Equatable {
  package var tick: TickFacts
  /// Changes with every deployment of rules.
  package var generation: Int64
  package var buckets: [BucketFacts]
  /// When one of these changes, the view has to be asked for again.
  package var lookups: Set<LookupKey>
  /// What came of each stream that the client has or asked for.
  package var streams: [StreamState]

  package init(
    tick: TickFacts, generation: Int64, buckets: [BucketFacts], lookups: Set<LookupKey> = [],
    streams: [StreamState] = []
  ) {
    self.tick = tick
    self.generation = generation
    self.buckets = buckets
    self.lookups = lookups
    self.streams = streams
  }
}

/// A page as the lines to write, with what its snapshot said.
package struct EncodedPage: Sendable {
  package var facts: PageFacts
  /// Nil when the page holds nothing for this client.
  package var line: SharedBytes?
  package var operations: Int

  package init(facts: PageFacts, line: SharedBytes?, operations: Int) {
    self.facts = facts
    self.line = line
    self.operations = operations
  }
}

/// A page as the body of an answer, with what its snapshot said.
package struct RowsBody: Sendable {
  package var facts: PageFacts
  package var body: SharedBytes

  package init(facts: PageFacts, body: SharedBytes) {
    self.facts = facts
    self.body = body
  }
}

/// The buckets whose changes somebody on this process wants.
package struct FollowedBuckets: Sendable, Equatable {
  package var names: Set<BucketName>

  package init(names: Set<BucketName>) {
    self.names = names
  }
}

/// Everything that happened after one tick, up to another, read in one snapshot.
package struct SourceChanges: Sendable {
  /// One followed bucket that changed.
  package struct Bucket: Sendable {
    package var facts: BucketFacts
    /// The rows lines, or nil when there are too many changes to hold in memory for all streams.
    package var lines: SharedBytes?

    package init(facts: BucketFacts, lines: SharedBytes?) {
      self.facts = facts
      self.lines = lines
    }
  }

  package var tick: TickFacts
  package var generation: Int64
  package var buckets: [Bucket]
  /// All the lookup keys whose values changed.
  package var lookups: [LookupKey]

  package init(
    tick: TickFacts, generation: Int64, buckets: [Bucket] = [], lookups: [LookupKey] = []
  ) {
    self.tick = tick
    self.generation = generation
    self.buckets = buckets
    self.lookups = lookups
  }
}
