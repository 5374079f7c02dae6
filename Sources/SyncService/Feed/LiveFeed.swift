internal import BucketStorage
internal import HTTPServer
package import ServiceRuntime
package import SyncProtocol

/// Reads each tick's changes once and gives every stream on this process its part of them.
///
/// It runs when told that there is a tick (``wake()``), and now and then by itself. One read covers
/// everything after the tick that the feed stands at, in one snapshot; the rows of a bucket are encoded
/// once, and the same bytes go to all the streams that follow it.
package actor LiveFeed: Service {
  package struct Configuration: Sendable {
    /// How often to look for a tick when nobody told of one.
    package var pollInterval: Duration = .seconds(1)
    /// How long to wait after a failed read; longer after each that follows.
    package var retryInterval: Duration = .milliseconds(250)
    package var longestRetryInterval: Duration = .seconds(5)
    /// How exact the deadlines of waiting streams are.
    package var deadlineInterval: Duration = .milliseconds(250)

    package init() {}
  }

  private struct Place {
    let follower: FeedFollower
    var buckets: Set<BucketName>
    var lookups: Set<LookupKey>
    /// The tick after which every change reaches the follower; nil until the read in progress is over.
    var since: Int64?
  }

  nonisolated package let name = "live-feed"
  private let source: any StreamSource
  private let configuration: Configuration
  private let observer: any Observer
  private let alarm = FeedAlarm()

  private var tick: TickFacts?
  private var generation: Int64?
  private var isReading = false
  private var places: [ObjectIdentifier: Place] = [:]
  private var byBucket: [BucketName: Set<ObjectIdentifier>] = [:]
  private var byLookup: [LookupKey: Set<ObjectIdentifier>] = [:]
  private var settling: [CheckedContinuation<Void, Never>] = []
  private var isStopping = false

  package init(
    source: any StreamSource, configuration: Configuration = Configuration(),
    observer: any Observer
  ) {
    self.source = source
    self.configuration = configuration
    self.observer = observer
  }

  /// How many streams follow.
  package var followerCount: Int { places.count }

  /// Says that there may be a new tick.
  nonisolated package func wake() {
    alarm.ring()
  }

  // MARK: Followers

  /// Gives `follower`, from the next read on, the changes of these buckets and keys.
  package func follow(
    _ follower: FeedFollower, buckets: Set<BucketName>, lookups: Set<LookupKey>
  ) {
    let id = ObjectIdentifier(follower)
    if isStopping {
      follower.end(Self.stopping)
      return
    }
    if let place = places[id], place.buckets == buckets, place.lookups == lookups { return }
    remove(id)
    let since = isReading ? nil : tick?.number
    places[id] = Place(follower: follower, buckets: buckets, lookups: lookups, since: since)
    for bucket in buckets { byBucket[bucket, default: []].insert(id) }
    for lookup in lookups { byLookup[lookup, default: []].insert(id) }
  }

  /// The tick after which the follower gets every change; waits for a read that began before it
  /// followed.
  package func since(of follower: FeedFollower) async -> Int64 {
    let id = ObjectIdentifier(follower)
    while let place = places[id], place.since == nil, !isStopping {
      await withCheckedContinuation { settling.append($0) }
    }
    return places[id]?.since ?? Int64.max
  }

  package func leave(_ follower: FeedFollower) {
    remove(ObjectIdentifier(follower))
  }

  private func remove(_ id: ObjectIdentifier) {
    guard let place = places.removeValue(forKey: id) else { return }
    for bucket in place.buckets {
      byBucket[bucket]?.remove(id)
      if byBucket[bucket]?.isEmpty == true { byBucket[bucket] = nil }
    }
    for lookup in place.lookups {
      byLookup[lookup]?.remove(id)
      if byLookup[lookup]?.isEmpty == true { byLookup[lookup] = nil }
    }
  }

  // MARK: Reading

  /// Reads and delivers until it is asked to stop.
  package func run() async throws {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.readForever() }
      group.addTask { await self.watchDeadlines() }
      group.addTask { await StopSignal.wait() }
      await group.next()
      group.cancelAll()
    }
    stop()
  }

  /// Ends every stream, saying that the gateway restarts.
  package func stop() {
    isStopping = true
    for place in places.values { place.follower.end(Self.stopping) }
    resumeSettling()
  }

  private func readForever() async {
    var retry = configuration.retryInterval
    while !Task.isCancelled {
      var pause = configuration.pollInterval
      do {
        if try await readOnce() { pause = .zero }
        retry = configuration.retryInterval
      } catch is CancellationError {
        return
      } catch {
        observer.observe(.warning("feed.read_failed", error: StorageError.explaining(error)))
        pause = retry
        retry = min(retry * 2, configuration.longestRetryInterval)
      }
      if pause > .zero { await alarm.wait(atMost: pause) }
    }
  }

  private func watchDeadlines() async {
    while !Task.isCancelled {
      try? await Task.sleep(for: configuration.deadlineInterval)
      let now = ContinuousClock.now
      for place in places.values { place.follower.checkDeadline(now) }
    }
  }

  /// Reads once; true when there was a new tick.
  package func readOnce() async throws -> Bool {
    isReading = true
    defer {
      isReading = false
      resumeSettling()
    }
    guard let from = tick else {
      settle(at: try await source.head())
      return false
    }
    let followed = FollowedBuckets(names: Set(byBucket.keys))
    guard let changes = try await source.changes(after: from, following: followed) else {
      // Too far behind, or another history: what the streams hold has to be checked anew.
      let head = try await source.head()
      for place in places.values { place.follower.end(Self.historyLost) }
      settle(at: head)
      return true
    }
    let isNewGeneration = generation != nil && generation != changes.generation
    generation = changes.generation
    guard changes.tick.number > from.number || isNewGeneration else {
      settle(at: from)
      return false
    }
    deliver(changes, after: from, toAll: isNewGeneration)
    settle(at: changes.tick)
    return true
  }

  private func deliver(_ changes: SourceChanges, after from: TickFacts, toAll: Bool) {
    var buckets: [BucketName: FeedBatch.Bucket] = [:]
    var names: [ObjectIdentifier: [BucketName]] = [:]
    for bucket in changes.buckets {
      let name = bucket.facts.name
      buckets[name] = FeedBatch.Bucket(
        facts: bucket.facts, lines: bucket.lines)
      for id in byBucket[name] ?? [] { names[id, default: []].append(name) }
    }
    var asking: Set<ObjectIdentifier> = []
    for lookup in changes.lookups { asking.formUnion(byLookup[lookup] ?? []) }
    if toAll { asking.formUnion(places.keys) }
    for id in asking where names[id] == nil { names[id] = [] }
    let batch = FeedBatch(after: from.number, tick: changes.tick, buckets: buckets)
    for (id, names) in names {
      guard let place = places[id] else { continue }
      guard place.since != nil else {
        // Who began to follow during the read is not covered by it, and asks again before settling.
        if asking.contains(id) { place.follower.askAgain(since: changes.tick.number) }
        continue
      }
      place.follower.push(
        FeedDelivery(batch: batch, names: names, asksAgain: asking.contains(id)))
    }
  }

  private func settle(at tick: TickFacts) {
    self.tick = tick
    for (id, place) in places where place.since == nil { places[id]?.since = tick.number }
  }

  private func resumeSettling() {
    let waiting = settling
    settling = []
    for continuation in waiting { continuation.resume() }
  }

  private static let stopping = ErrorBody(
    code: "SLUICE_STOPPING", message: "The gateway is restarting.",
    hint: "Connect again; the stream goes on where it ended.")

  private static let historyLost = ErrorBody(
    code: "SLUICE_HISTORY_LOST",
    message: "The stream cannot be continued without looking at its positions again.",
    hint: "Connect again; what still holds is not downloaded anew.")
}
