package import BucketStorage
package import SyncProtocol

/// Streams' source in PostgreSQL: the bucket store's answers, as facts and encoded lines.
package struct StorageSource: StreamSource {
  private let store: BucketStore
  private let names: BucketNames
  private let pageRows: Int
  private let liveLimit: Int
  private let budget: ByteBudget
  /// Lets one row at a time be read that is larger than a page: until it is encoded, it takes several
  /// times its size.
  private let turn = ByteBudget(1)

  /// Changes of more than `liveLimit` entries at once are left to pages. What is larger than a page must
  /// fit in `budget`, together with all the others of its kind that readers have not taken yet.
  package init(
    store: BucketStore, pageRows: Int = 5000, liveLimit: Int = 10_000,
    budget: ByteBudget = ByteBudget(128 << 20)
  ) {
    self.store = store
    self.pageRows = pageRows
    self.liveLimit = liveLimit
    self.budget = budget
    names = BucketNames(store: store)
  }

  package func view(of request: ViewRequest) async throws -> StreamView {
    let state = try await store.checkpoint(
      for: RequestContext(
        claimsJSON: request.claimsJSON, parametersJSON: request.parametersJSON,
        subscriptionsJSON: StreamSubscription.json(request.subscriptions),
        includeDefaults: request.includeDefaults))
    return StreamView(
      tick: TickFacts(state.tick), generation: state.generation,
      buckets: state.buckets.map { bucket in
        BucketFacts(
          name: BucketName(bucket.name), rowID: bucket.rowID, priority: bucket.priority,
          count: bucket.count, digest: bucket.digest, lastID: bucket.lastID,
          floor: bucket.floorID, subscriptions: bucket.subscriptions)
      },
      lookups: Set(
        state.lookupKeys.map { LookupKey(lookup: $0.lookup, key: BucketName($0.key)) }),
      streams: SubscriptionOutcome.streams(
        of: request.subscriptions, includeDefaults: request.includeDefaults,
        among: state.streams, faults: state.faults))
  }

  package func survival(of positions: [SyncPosition]) async throws -> [Bool] {
    try await store.survival(of: positions.map { ($0.stamp, $0.id) })
  }

  package func page(
    _ request: StreamSession.StateMachine.PageRequest
  ) async throws -> EncodedPage? {
    try await read(request, limit: pageRows) { page, lease in
      await EntryEncoding.line(page, for: request, keeping: lease)
    }
  }

  package func rows(
    _ request: StreamSession.StateMachine.PageRequest, limit: Int, end: SyncPosition
  ) async throws -> RowsBody? {
    try await read(request, limit: limit) { page, lease in
      await EntryEncoding.body(page, for: request, end: end, keeping: lease)
    }
  }

  /// Nil when a row larger than a page found no room in the budget.
  private func read<Encoded>(
    _ request: StreamSession.StateMachine.PageRequest, limit: Int,
    encode: (BucketPage, ByteBudget.Lease?) async -> Encoded
  ) async throws -> Encoded? {
    let page = try await store.page(
      bucket: request.rowID, after: request.after, through: request.through, limit: limit,
      maxBytes: Self.pageBytes, largest: Self.pageBytes)
    var oversize = page.oversize
    while let bytes = oversize {
      guard let lease = await budget.lease(bytes, within: Self.patience),
        let turn = await turn.lease(1, within: Self.patience)
      else { return nil }
      let page = try await store.page(
        bucket: request.rowID, after: request.after, through: request.through, limit: 1,
        largest: bytes)
      // Another version of the row may have come that is larger still.
      oversize = page.oversize
      if oversize == nil {
        let encoded = await encode(page, lease)
        return withExtendedLifetime(turn) { encoded }
      }
    }
    return await encode(page, nil)
  }

  /// The data that a page holds at most, unless it is a single row's.
  static let pageBytes = 1 << 20
  /// How long to wait for room: a stream has to be able to say meanwhile that it is alive.
  private static let patience = Duration.seconds(2)

  package func head() async throws -> TickFacts {
    TickFacts(try await store.head().tick)
  }

  package func schema() async throws -> PublishedSchema {
    try await store.publishedSchema()
  }

  /// Two statements tell it, and each has its own snapshot: what changed, and the entries. They are asked
  /// in turn until two in a row show the same tick.
  package func changes(
    after tick: TickFacts, following: FollowedBuckets
  ) async throws -> SourceChanges? {
    guard var changes = try await store.changes(since: tick.number) else { return nil }
    var entries: LiveEntries?
    var asked: [Int64] = []
    for _ in 0..<8 {
      let changed = try await names.named(
        changes.buckets, following: following, generation: changes.generation)
      if changed.isEmpty { return Self.changes(changes, changed: [:], entries: nil) }
      if entries?.head != changes.head || !Set(changed.keys).isSubset(of: asked) {
        asked = changed.keys.sorted()
        let read = try await store.liveEntries(
          buckets: asked, after: tick.boundary, limit: liveLimit)
        entries = read
        if read.head != changes.head {
          guard let newer = try await store.changes(since: tick.number) else { return nil }
          changes = newer
          continue
        }
      }
      guard let entries else { continue }
      var answer = Self.changes(changes, changed: changed, entries: entries)
      answer.buckets = await EntryEncoding.buckets(entries, named: changed, within: budget)
      return answer
    }
    let changed = try await names.named(
      changes.buckets, following: following, generation: changes.generation)
    return Self.tooMany(changes, changed)
  }

  private static func changes(
    _ changes: TickChanges, changed: [Int64: BucketName], entries: LiveEntries?
  ) -> SourceChanges {
    SourceChanges(
      tick: TickFacts(changes.head), generation: changes.generation,
      lookups: changes.lookupKeys.map {
        LookupKey(lookup: $0.lookup, key: BucketName($0.key))
      })
  }

  /// The changes without their rows: the streams read pages.
  private static func tooMany(
    _ changes: TickChanges, _ changed: [Int64: BucketName]
  ) -> SourceChanges {
    var answer = Self.changes(changes, changed: changed, entries: nil)
    answer.buckets = changed.map { rowID, name in
      SourceChanges.Bucket(facts: BucketFacts(name: name, rowID: rowID), lines: nil)
    }
    return answer
  }
}

extension TickFacts {
  fileprivate init(_ tick: Tick) {
    self.init(number: tick.number, stamp: tick.stamp, boundary: tick.boundaryID)
  }
}
