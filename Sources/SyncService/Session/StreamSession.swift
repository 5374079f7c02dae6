package import FoundationEssentials
package import HTTPServer
internal import ServiceRuntime
package import SyncProtocol

/// Where a session's lines go: a response, or a test's list.
package protocol LineWriter: Sendable {
  /// Returns when there is room for more; throws when the client has gone or does not read.
  func write(_ bytes: SharedBytes) async throws
}

/// One client's stream, from its request to its end.
///
/// It runs on the task that calls ``run(to:following:)``. The state machine decides; this reads, writes
/// and waits. The order is always: what the request may see, the checkpoint, the rows of that tick or of
/// earlier ones, the complete.
package struct StreamSession: Sendable {
  package struct Configuration: Sendable {
    package var keepaliveInterval: Duration = .seconds(20)
    /// How long an incomplete checkpoint waits for the live feed before pages are read again.
    package var feedPatience: Duration = .seconds(2)
    /// How long to rest when this many rounds followed each other without a complete.
    package var restlessRounds = 8
    package var restDuration: Duration = .milliseconds(50)

    package init() {}
  }

  /// How a stream came to its end.
  package enum Ending: Sendable, Equatable {
    case clientLeft
    case tokenExpired
    case refused(ErrorBody)
    case stopped
  }

  private let source: any StreamSource
  private let feed: LiveFeed
  private let request: StreamRequest
  private let viewRequest: ViewRequest
  private let tokenExpiry: Date
  private let configuration: Configuration
  private let now: @Sendable () -> Date
  private let metrics: StreamMetrics

  package init(
    request: StreamRequest, claimsJSON: String, tokenExpiry: Date, source: any StreamSource,
    feed: LiveFeed, configuration: Configuration = Configuration(), metrics: StreamMetrics,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.source = source
    self.feed = feed
    self.request = request
    viewRequest = ViewRequest(
      claimsJSON: claimsJSON, parametersJSON: request.parametersJSON,
      subscriptions: request.subscriptions, includeDefaults: request.includeDefaults)
    self.tokenExpiry = tokenExpiry
    self.configuration = configuration
    self.metrics = metrics
    self.now = now
  }

  /// Streams until the client leaves, the token expires, or something has to be refused.
  ///
  /// The caller closes `follower` when the client leaves. An error is the last line; the client comes
  /// back and goes on from what it holds.
  package func run(
    to writer: any LineWriter, following follower: FeedFollower,
    onFirstComplete: @escaping @Sendable () -> Void = {}
  ) async -> Ending {
    let ending: Ending
    do {
      ending = try await stream(
        to: writer, following: follower, onFirstComplete: onFirstComplete)
    } catch let error as ErrorBody {
      ending = .refused(error)
    } catch let error as ProtocolError {
      ending = .refused(ErrorBody(error))
    } catch is HTTPClientGone {
      ending = .clientLeft
    } catch is CancellationError {
      ending = .stopped
    } catch {
      ending = .refused(ServiceErrors.body(for: error))
    }
    await feed.leave(follower)
    if case .refused(let error) = ending {
      // Whether the client still hears it changes nothing.
      try? await writer.write(SharedBytes(error.encodedLine()))
    }
    return ending
  }
}

extension StreamSession {
  /// What a running stream has to remember besides the machine.
  private struct Progress {
    var schemaHash: String?
    var generation: Int64?
    var nextKeepalive: ContinuousClock.Instant
    var restless = 0
    var onFirstComplete: (@Sendable () -> Void)?

    mutating func completed() {
      restless = 0
      onFirstComplete.take()?()
    }
  }

  private struct Ended: Error {
    var ending: Ending
  }

  private func stream(
    to writer: any LineWriter, following follower: FeedFollower,
    onFirstComplete: @escaping @Sendable () -> Void
  ) async throws -> Ending {
    var machine = StateMachine(claims: try await claims())
    var progress = Progress(
      schemaHash: request.schema, generation: nil,
      nextKeepalive: .now + configuration.keepaliveInterval,
      onFirstComplete: onFirstComplete)
    do {
      while true {
        try await round(&machine, &progress, to: writer, following: follower)
      }
    } catch let ended as Ended {
      return ended.ending
    }
  }

  private func claims() async throws -> [BucketName: BucketClaim] {
    guard !request.buckets.isEmpty else { return [:] }
    let entries = Array(request.buckets)
    let survival = try await source.survival(of: entries.map(\.value))
    var claims: [BucketName: BucketClaim] = [:]
    for (entry, survives) in zip(entries, survival) {
      claims[entry.key] = BucketClaim(
        id: entry.value.id, start: entry.value.start, survives: survives)
    }
    return claims
  }

  /// One round, and the live feed after it for as long as it suffices.
  private func round(
    _ machine: inout StateMachine, _ progress: inout Progress, to writer: any LineWriter,
    following follower: FeedFollower
  ) async throws {
    try await heartbeat(&progress, to: writer, following: follower)
    progress.restless += 1
    if progress.restless > configuration.restlessRounds {
      try await Task.sleep(for: configuration.restDuration)
    }
    follower.clear()
    let view = try await source.view(of: viewRequest)
    if view.generation != progress.generation {
      let schema = try await source.schema()
      if schema.hash != progress.schemaHash {
        try await writer.write(SharedBytes(schema.encodedLine()))
        progress.schemaHash = schema.hash
      }
      progress.generation = view.generation
    }
    await feed.follow(
      follower, buckets: Set(view.buckets.map(\.name)), lookups: view.lookups)
    switch machine.announce(view.tick, buckets: view.buckets, streams: view.streams) {
    case .historyLost:
      throw ServiceErrors.historyLost
    case .nothingNew:
      progress.restless = 0
    case .send(let announcement):
      try await writer.write(SharedBytes(Self.line(for: announcement)))
      guard try await download(&machine, &progress, to: writer, following: follower) else {
        return
      }
    }
    let since = await feed.since(of: follower)
    guard machine.settle(followingSince: since) == .follow else { return }
    try await follow(&machine, &progress, to: writer, following: follower)
  }

  /// Sends what the round announced; false when another round has to begin.
  private func download(
    _ machine: inout StateMachine, _ progress: inout Progress, to writer: any LineWriter,
    following follower: FeedFollower
  ) async throws -> Bool {
    while true {
      let number = machine.tick?.number ?? 0
      switch machine.next() {
      case .load(let request):
        try await heartbeat(&progress, to: writer, following: follower)
        if follower.mustAskAgain(after: number) { return false }
        guard let page = try await source.page(request) else { continue }
        switch machine.page(page.facts) {
        case .send:
          progress.restless = 0
          guard let line = page.line else { continue }
          metrics.operations.add(page.operations)
          try await writer.write(line)
        case .skip:
          continue
        case .announceAgain:
          return false
        case .historyLost:
          throw ServiceErrors.historyLost
        }
      case .partial(let priority):
        try await writer.write(
          SharedBytes(CompleteLine(tick: number, priority: priority).encodedLine()))
      case .complete:
        try await writer.write(SharedBytes(CompleteLine(tick: number).encodedLine()))
        metrics.checkpoints.add()
        progress.completed()
      case .settle:
        return true
      }
      if machine.isComplete { return true }
    }
  }

  /// Writes what the live feed brings, until it does not suffice.
  private func follow(
    _ machine: inout StateMachine, _ progress: inout Progress, to writer: any LineWriter,
    following follower: FeedFollower
  ) async throws {
    var patience = ContinuousClock.now + configuration.feedPatience
    while true {
      try await heartbeat(&progress, to: writer, following: follower)
      var deadline = min(progress.nextKeepalive, .now + timeLeft)
      if !machine.isComplete { deadline = min(deadline, patience) }
      switch await follower.next(until: deadline) {
      case .delivery(let delivery):
        switch machine.batch(delivery.facts) {
        case .ignore:
          continue
        case .announceAgain:
          return
        case .send(let announcement, let complete):
          try await write(delivery, announcement, complete: complete, to: writer)
          if complete {
            metrics.checkpoints.add()
            progress.completed()
          }
          patience = .now + configuration.feedPatience
        }
      case .overrun:
        metrics.overruns.add()
        return
      case .timeout:
        if !machine.isComplete, patience <= .now { return }
      case .closed:
        throw Ended(ending: .clientLeft)
      case .ended(let error):
        throw Ended(ending: error.map { .refused($0) } ?? .stopped)
      }
    }
  }

  private func write(
    _ delivery: FeedDelivery, _ announcement: Announcement, complete: Bool,
    to writer: any LineWriter
  ) async throws {
    try await writer.write(SharedBytes(Self.line(for: announcement)))
    for bucket in announcement.buckets {
      guard let lines = delivery.batch.buckets[bucket.facts.name]?.lines, lines.count > 0 else {
        continue
      }
      try await writer.write(lines)
    }
    if complete {
      try await writer.write(
        SharedBytes(CompleteLine(tick: announcement.tick.number).encodedLine()))
    }
  }

  private var timeLeft: Duration {
    .seconds(max(0, tokenExpiry.timeIntervalSince(now())))
  }

  /// Between any two writes: ends the stream when it must end, and says that it is alive when due.
  private func heartbeat(
    _ progress: inout Progress, to writer: any LineWriter, following follower: FeedFollower
  ) async throws {
    try Task.checkCancellation()
    switch follower.ending {
    case .closed: throw Ended(ending: .clientLeft)
    case .ended(let error): throw Ended(ending: error.map { .refused($0) } ?? .stopped)
    default: break
    }
    let left = timeLeft
    if left <= .zero {
      try await writer.write(SharedBytes(KeepaliveLine(tokenExpiresIn: 0).encodedLine()))
      throw Ended(ending: .tokenExpired)
    }
    guard progress.nextKeepalive <= .now else { return }
    progress.nextKeepalive = .now + configuration.keepaliveInterval
    // Rounded up: 0 is said only when the stream ends.
    let line = KeepaliveLine(tokenExpiresIn: left.components.seconds + 1)
    try await writer.write(SharedBytes(line.encodedLine()))
  }

  private static func line(for announcement: Announcement) -> [UInt8] {
    CheckpointLine(
      tick: announcement.tick.number, stamp: announcement.tick.stamp,
      id: announcement.tick.boundary, full: announcement.isFull,
      buckets: announcement.buckets.map { bucket in
        BucketState(
          name: bucket.facts.name, priority: bucket.facts.priority, count: bucket.facts.count,
          digest: UInt64(bucket.facts.digest, radix: 16) ?? 0, start: bucket.start,
          reset: bucket.reset, subscriptions: bucket.facts.subscriptions)
      },
      removed: announcement.removed, streams: announcement.streams
    ).encodedLine()
  }
}
