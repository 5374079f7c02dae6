package import HTTPServer
package import SyncProtocol
internal import Synchronization

/// What the live feed read in one snapshot, encoded once for all the streams that want a part of it.
package final class FeedBatch: Sendable {
  package struct Bucket: Sendable {
    package let facts: BucketFacts
    /// Nil when the changes are too many for the feed.
    package let lines: SharedBytes?
  }

  package let after: Int64
  package let tick: TickFacts
  package let buckets: [BucketName: Bucket]

  package init(after: Int64, tick: TickFacts, buckets: [BucketName: Bucket]) {
    self.after = after
    self.tick = tick
    self.buckets = buckets
  }
}

/// One stream's part of a batch.
package struct FeedDelivery: Sendable {
  package let batch: FeedBatch
  /// The buckets of the batch that the stream follows.
  package let names: [BucketName]
  /// Whether a key that decides what the stream may see changed.
  package let asksAgain: Bool

  /// The delivery as the stream's state machine takes it.
  package var facts: BatchFacts {
    let buckets = names.compactMap { batch.buckets[$0] }
    return BatchFacts(
      after: batch.after, tick: batch.tick, buckets: buckets.map(\.facts),
      asksAgain: asksAgain || buckets.contains { $0.lines == nil })
  }

  /// Bytes that waiting costs, at most.
  var byteCount: Int {
    names.reduce(0) { $0 + (batch.buckets[$1]?.lines?.count ?? 0) }
  }
}

/// One stream's place at the live feed: a short queue of deliveries, and the stream waiting for it.
///
/// The feed pushes, from its actor; the stream takes, from its task. A queue that would grow over its
/// limits is thrown away: the stream has left the feed and returns by reading pages.
package final class FeedFollower: Sendable {
  package enum Event: Sendable {
    case delivery(FeedDelivery)
    /// Deliveries were lost: read pages again.
    case overrun
    case timeout
    /// The client has gone.
    case closed
    /// The gateway ends the stream, with an error to say or in silence.
    case ended(ErrorBody?)
  }

  private struct State {
    var queue: [FeedDelivery] = []
    var queuedBytes = 0
    var isOverrun = false
    var isClosed = false
    var end: ErrorBody??
    /// The newest tick at which a key that the stream depends on changed.
    var asksAgainSince: Int64 = 0
    var waiter: CheckedContinuation<Event, Never>?
    var deadline: ContinuousClock.Instant?

    mutating func take() -> Event? {
      if isClosed { return .closed }
      if let end { return .ended(end) }
      if isOverrun {
        isOverrun = false
        return .overrun
      }
      guard !queue.isEmpty else { return nil }
      let delivery = queue.removeFirst()
      queuedBytes -= delivery.byteCount
      return .delivery(delivery)
    }
  }

  private let state = Mutex(State())
  private let queueLimit: Int
  private let byteLimit: Int

  package init(queueLimit: Int = 64, byteLimit: Int = 1 << 20) {
    self.queueLimit = queueLimit
    self.byteLimit = byteLimit
  }

  /// The next thing that happens; `.timeout` some time after `deadline`. One caller at a time.
  package func next(until deadline: ContinuousClock.Instant) async -> Event {
    await withCheckedContinuation { continuation in
      let event: Event? = state.withLock { state in
        if let event = state.take() { return event }
        state.waiter = continuation
        state.deadline = deadline
        return nil
      }
      if let event { continuation.resume(returning: event) }
    }
  }

  /// Forgets what is queued, before the stream reads pages again.
  package func clear() {
    state.withLock {
      $0.queue = []
      $0.queuedBytes = 0
      $0.isOverrun = false
    }
  }

  /// Whether the stream may see something else than at tick `number`, as far as the feed has got.
  package func mustAskAgain(after number: Int64) -> Bool {
    state.withLock { $0.asksAgainSince > number }
  }

  /// Whether the stream is to end, and with what.
  package var ending: Event? {
    state.withLock { state in
      if state.isClosed { return .closed }
      if let end = state.end { return .ended(end) }
      return nil
    }
  }

  package func close() {
    wake { $0.isClosed = true }
  }

  package func end(_ error: ErrorBody?) {
    wake { if $0.end == nil { $0.end = .some(error) } }
  }

  func askAgain(since number: Int64) {
    state.withLock { $0.asksAgainSince = max($0.asksAgainSince, number) }
  }

  func push(_ delivery: FeedDelivery) {
    wake { state in
      if delivery.asksAgain { state.asksAgainSince = delivery.batch.tick.number }
      guard !state.isOverrun else { return }
      let bytes = delivery.byteCount
      guard state.queue.count < queueLimit,
        state.queue.isEmpty || state.queuedBytes + bytes <= byteLimit
      else {
        state.queue = []
        state.queuedBytes = 0
        state.isOverrun = true
        return
      }
      state.queue.append(delivery)
      state.queuedBytes += bytes
    }
  }

  /// Wakes the stream when its deadline has passed.
  func checkDeadline(_ now: ContinuousClock.Instant) {
    let waiter: CheckedContinuation<Event, Never>? = state.withLock { state in
      guard let deadline = state.deadline, deadline <= now else { return nil }
      state.deadline = nil
      return state.waiter.take()
    }
    waiter?.resume(returning: .timeout)
  }

  private func wake(_ change: (inout State) -> Void) {
    let resumption: (CheckedContinuation<Event, Never>, Event)? = state.withLock { state in
      change(&state)
      guard state.waiter != nil, let event = state.take(), let waiter = state.waiter.take() else {
        return nil
      }
      state.deadline = nil
      return (waiter, event)
    }
    resumption?.0.resume(returning: resumption?.1 ?? .timeout)
  }
}
