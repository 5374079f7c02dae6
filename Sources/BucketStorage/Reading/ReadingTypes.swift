/// One pass of the sequencer: a state of the source, and the ids that it gave.
package struct Tick: Sendable, Equatable {
  package var number: Int64
  /// ISO 8601 with microseconds, in UTC: `2026-11-30T02:05:11.123456Z`.
  package var stamp: String
  /// The multiple of 16 that closes the tick: every entry of it has a lower id.
  package var boundaryID: Int64

  package init(number: Int64, stamp: String, boundaryID: Int64) {
    self.number = number
    self.stamp = stamp
    self.boundaryID = boundaryID
  }
}

/// On whose behalf buckets are asked for.
package struct RequestContext: Sendable, Equatable {
  /// The verified payload of the token.
  package var claimsJSON: String
  package var parametersJSON: String
  /// `[{"stream":"…","parameters":{…},"override_priority":1}]`
  package var subscriptionsJSON: String
  package var includeDefaults: Bool

  package init(
    claimsJSON: String, parametersJSON: String = "{}", subscriptionsJSON: String = "[]",
    includeDefaults: Bool = true
  ) {
    self.claimsJSON = claimsJSON
    self.parametersJSON = parametersJSON
    self.subscriptionsJSON = subscriptionsJSON
    self.includeDefaults = includeDefaults
  }
}

/// A bucket that a request may hold, as one snapshot shows it.
package struct GrantedBucket: Sendable, Equatable {
  /// The definition's name followed by the JSON array of the bucket's values: `by_list["a1"]`.
  package var name: String
  /// Nil for a bucket that never had a row.
  package var rowID: Int64?
  package var definition: String
  package var priority: Int
  package var count: Int64
  /// 16 hexadecimal digits.
  package var digest: String
  /// The id of the newest entry, tombstones included; 0 when there never was one.
  package var lastID: Int64
  /// The lowest id from which the bucket can be followed without a gap.
  package var floorID: Int64
  /// The places, in the request, of the subscriptions that lead to it; ascending.
  package var subscriptions: [Int]
}

/// A stream of the rules in force.
package struct GrantedStream: Sendable, Equatable {
  package var name: String
  /// Whether clients have it without asking.
  package var isDefault: Bool

  package init(name: String, isDefault: Bool) {
    self.name = name
    self.isDefault = isDefault
  }
}

/// Why a subscription gives nothing, or not everything.
package struct SubscriptionFault: Sendable, Hashable {
  package var stream: String
  /// The place in the request's subscriptions; nil for what a client has without asking.
  package var place: Int?
  package var message: String

  package init(stream: String, place: Int?, message: String) {
    self.stream = stream
    self.place = place
    self.message = message
  }
}

/// One key of one materialised parameter query.
package struct LookupKey: Sendable, Hashable {
  /// The lookup's number in the database, never used again for another.
  package var lookup: Int64
  /// A JSON array.
  package var key: String

  package init(lookup: Int64, key: String) {
    self.lookup = lookup
    self.key = key
  }
}

/// What a request may hold at one tick.
package struct CheckpointState: Sendable, Equatable {
  package var tick: Tick
  /// Rises with every deployment of rules.
  package var generation: Int64
  /// Ordered by priority, then name; no name twice.
  package var buckets: [GrantedBucket]
  /// Every key that was consulted, found or not: when one changes, the state has to be asked again.
  package var lookupKeys: [LookupKey]
  /// The streams that can be subscribed to, in the rules' order.
  package var streams: [GrantedStream] = []
  package var faults: [SubscriptionFault] = []
}

/// What one snapshot says about a bucket.
package struct BucketHead: Sendable, Equatable {
  package var rowID: Int64
  package var count: Int64
  /// 16 hexadecimal digits.
  package var digest: String
  package var lastID: Int64
  package var floorID: Int64
}

/// What changed after one tick, up to the tick in force.
package struct TickChanges: Sendable, Equatable {
  package var head: Tick
  package var generation: Int64
  /// Row ids of the buckets that got entries.
  package var buckets: [Int64]
  package var lookupKeys: [LookupKey]
}
