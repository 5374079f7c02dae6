package import SyncProtocol

/// The tick that a checkpoint shows.
package struct TickFacts: Sendable, Equatable {
  package var number: Int64
  package var stamp: String
  /// The multiple of 16 that ends the tick: an entry belongs to it, or to an earlier one, when its id
  /// is below.
  package var boundary: Int64

  package init(number: Int64, stamp: String, boundary: Int64) {
    self.number = number
    self.stamp = stamp
    self.boundary = boundary
  }
}

/// What one snapshot says about a bucket that a stream may see.
package struct BucketFacts: Sendable, Equatable {
  package var name: BucketName
  /// The bucket's row, or nil for a bucket that never had an entry.
  package var rowID: Int64?
  package var priority: Int
  package var count: Int64
  /// 16 hexadecimal digits.
  package var digest: String
  /// The id of the bucket's newest entry, tombstones included.
  package var lastID: Int64
  /// The lowest id from which the bucket can still be followed without a gap.
  package var floor: Int64
  /// The places, in the request, of the subscriptions that lead to the bucket.
  package var subscriptions: [Int]

  package init(
    name: BucketName, rowID: Int64?, priority: Int = 3, count: Int64 = 0,
    digest: String = "0000000000000000", lastID: Int64 = 0, floor: Int64 = 0,
    subscriptions: [Int] = []
  ) {
    self.name = name
    self.rowID = rowID
    self.priority = priority
    self.count = count
    self.digest = digest
    self.lastID = lastID
    self.floor = floor
    self.subscriptions = subscriptions
  }
}

/// Where a client says it stands in a bucket, and whether the database's history still knows that place.
package struct BucketClaim: Sendable, Equatable {
  package var id: Int64
  package var start: Int64
  /// False when the position was never given out by this database, or lies in a range that a failover
  /// skipped.
  package var survives: Bool

  package init(id: Int64, start: Int64, survives: Bool) {
    self.id = id
    self.start = start
    self.survives = survives
  }
}

/// What is to be told about one bucket in a checkpoint line.
package struct BucketAnnouncement: Sendable, Equatable {
  package var facts: BucketFacts
  package var start: Int64
  package var reset: Bool

  package init(facts: BucketFacts, start: Int64, reset: Bool) {
    self.facts = facts
    self.start = start
    self.reset = reset
  }
}

/// What a checkpoint line has to say.
package struct Announcement: Sendable, Equatable {
  package var tick: TickFacts
  /// Whether it lists every bucket, rather than those that changed.
  package var isFull: Bool
  package var buckets: [BucketAnnouncement]
  package var removed: [BucketName]
  /// What came of the client's streams; nil when there is nothing to tell.
  package var streams: [StreamState]?

  package init(
    tick: TickFacts, isFull: Bool, buckets: [BucketAnnouncement], removed: [BucketName] = [],
    streams: [StreamState]? = nil
  ) {
    self.tick = tick
    self.isFull = isFull
    self.buckets = buckets
    self.removed = removed
    self.streams = streams
  }
}

/// What was found when a page of a bucket was read, all of it in the page's own snapshot.
package struct PageFacts: Sendable, Equatable {
  /// The id of the page's last entry, or nil when it has none.
  package var lastEntryID: Int64?
  /// Whether entries up to the requested id remain after this page.
  package var hasMore: Bool
  package var headTick: Int64
  package var bucketLastID: Int64
  package var floor: Int64

  package init(
    lastEntryID: Int64?, hasMore: Bool, headTick: Int64, bucketLastID: Int64, floor: Int64
  ) {
    self.lastEntryID = lastEntryID
    self.hasMore = hasMore
    self.headTick = headTick
    self.bucketLastID = bucketLastID
    self.floor = floor
  }
}

/// What the live feed read in one snapshot, seen by one stream: every change of its buckets after one
/// tick, up to another.
package struct BatchFacts: Sendable, Equatable {
  /// The number of the tick after which the changes lie.
  package var after: Int64
  package var tick: TickFacts
  /// The stream's buckets that changed.
  package var buckets: [BucketFacts]
  /// Whether what the stream may see has to be asked again, or the changes were too many for the feed.
  package var asksAgain: Bool

  package init(after: Int64, tick: TickFacts, buckets: [BucketFacts], asksAgain: Bool = false) {
    self.after = after
    self.tick = tick
    self.buckets = buckets
    self.asksAgain = asksAgain
  }
}
