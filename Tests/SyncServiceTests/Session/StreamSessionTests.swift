import Foundation
import HTTPServer
import ServiceRuntime
import SyncProtocol
import Synchronization
import TestSupport
import Testing

@testable import SyncService

/// Whole streams against a simulated database, read by a client that checks every line.
@Suite struct StreamSessionTests {
  /// Streams to `client` until `isDone` says so at a complete, or the stream ends by itself.
  private func stream(
    _ source: SimulatedSource, to client: ModelClient, expiry: Date = .distantFuture,
    configuration: StreamSession.Configuration = StreamSession.Configuration(),
    until isDone: @escaping @Sendable (ModelClient.State) -> Bool
  ) async -> StreamSession.Ending {
    var feedConfiguration = LiveFeed.Configuration()
    feedConfiguration.pollInterval = .milliseconds(2)
    feedConfiguration.retryInterval = .milliseconds(2)
    feedConfiguration.deadlineInterval = .milliseconds(5)
    let feed = LiveFeed(source: source, configuration: feedConfiguration, observer: NoObserver())
    let follower = FeedFollower()
    let session = StreamSession(
      request: client.request, claimsJSON: "{}", tokenExpiry: expiry, source: source, feed: feed,
      configuration: configuration, metrics: StreamMetrics(Metrics()))
    return await withTaskGroup(of: StreamSession.Ending?.self) { group in
      group.addTask {
        try? await feed.run()
        return nil
      }
      group.addTask {
        while !Task.isCancelled {
          if client.state.withLock({ isDone($0) }) { follower.close() }
          try? await Task.sleep(for: .milliseconds(1))
        }
        return nil
      }
      group.addTask { await session.run(to: client, following: follower) }
      var ending: StreamSession.Ending?
      for await result in group where result != nil {
        ending = result
        group.cancelAll()
      }
      return ending ?? .stopped
    }
  }

  private func check(_ client: ModelClient, against source: SimulatedSource, _ note: Comment) {
    let history = source.state.withLock { $0.history }
    client.state.withLock { state in
      #expect(state.faults == [], note)
      for complete in state.completes {
        #expect(complete.rows == history[complete.tick], note)
      }
    }
  }

  @Test(
    "every complete is exactly one tick, whatever happens between any two reads",
    arguments: 0..<60)
  func everyCompleteIsATick(run: Int) async {
    let seed = SeededGenerator().seed &+ UInt64(run)
    let random = Mutex(SeededGenerator(seed: seed))
    let names: [BucketName] = ["a[]", "b[]", "c[]", "d[]"]
    let change: @Sendable (SimulatedSource) -> Void = { source in
      let (changes, grant) = random.withLock { random in
        let changes = (0..<Int.random(in: 0...4, using: &random)).map { _ in
          (
            names[Int.random(in: 0..<4, using: &random)],
            "r\(Int.random(in: 0..<6, using: &random))",
            Int.random(in: 0..<3, using: &random) == 0
              ? nil : Int.random(in: 0..<100, using: &random)
          )
        }
        let grant =
          Int.random(in: 0..<6, using: &random) == 0
          ? Set(names.filter { _ in Bool.random(using: &random) }) : nil
        return (changes, grant)
      }
      source.tick(changes, grant: grant)
      if random.withLock({ Int.random(in: 0..<12, using: &$0) == 0 }) { source.prune() }
    }
    let source = SimulatedSource { source, calls in
      guard calls < 400, random.withLock({ Int.random(in: 0..<3, using: &$0) > 0 }) else { return }
      change(source)
    }
    for _ in 0..<10 { change(source) }
    source.tick(grant: Set(names))
    let client = ModelClient()
    // Cut the line at random places and come back, then stay until everything is there.
    for _ in 0..<4 {
      client.state.withLock { state in
        state.linesLeft = random.withLock { Int.random(in: 1..<30, using: &$0) }
      }
      _ = await stream(source, to: client) { $0.completes.count > 20 }
    }
    client.state.withLock { $0.linesLeft = Int.max }
    let ending = await stream(source, to: client) { state in
      let (calls, number) = source.state.withLock { ($0.calls, $0.number) }
      _ = number
      guard calls >= 400, let last = state.completes.last else { return false }
      let current = source.state.withLock { $0.history[$0.number] }
      return last.rows == current
    }
    #expect(ending == .clientLeft, "seed \(seed)")
    check(client, against: source, "seed \(seed)")
    #expect(client.state.withLock { $0.completes.count } > 0)
  }

  @Test func `a bucket that is taken away sends nothing of the tick that took it`() async {
    let source = SimulatedSource()
    source.tick([("a[]", "r1", 1), ("b[]", "r2", 2)], grant: ["a[]", "b[]"])
    let client = ModelClient { count in
      if count == 1 { source.tick([("b[]", "secret", 99)], grant: ["a[]"]) }
    }
    _ = await stream(source, to: client) { $0.completes.count >= 2 }
    check(client, against: source, "")
    client.state.withLock { state in
      #expect(
        state.completes.map(\.rows) == [["a[]": ["r1": 1], "b[]": ["r2": 2]], ["a[]": ["r1": 1]]])
    }
  }

  @Test func `a database that fails ends the stream with an error that says to come back`() async {
    struct Failure: Error {}
    let source = SimulatedSource()
    source.tick([("a[]", "r1", 1), ("a[]", "r2", 2), ("a[]", "r3", 3)], grant: ["a[]"])
    let failing = SimulatedSource(pageLimit: 1) { source, _ in
      source.state.withLock { if $0.pages == 2 { $0.failure = Failure() } }
    }
    let state = source.state.withLock { $0 }
    failing.state.withLock { $0 = state }
    let client = ModelClient()
    let ending = await stream(failing, to: client) { _ in false }
    #expect(ending == .refused(ServiceErrors.internalFault))
    client.state.withLock { state in
      #expect(state.errors == [ServiceErrors.internalFault])
      #expect(state.completes.isEmpty)
    }
    // What was received counts: the next stream goes on from there.
    _ = await stream(source, to: client) { !$0.completes.isEmpty }
    check(client, against: source, "")
  }

  @Test func `a token that expires ends the stream with a keepalive of 0`() async {
    let source = SimulatedSource()
    source.tick([("a[]", "r1", 1)], grant: ["a[]"])
    let client = ModelClient()
    var configuration = StreamSession.Configuration()
    configuration.keepaliveInterval = .milliseconds(50)
    let ending = await stream(
      source, to: client, expiry: Date(timeIntervalSinceNow: 0.9), configuration: configuration
    ) { _ in false }
    #expect(ending == .tokenExpired)
    client.state.withLock { state in
      #expect(state.completes.count == 1)
      #expect(state.keepalives.last == 0)
      #expect(state.keepalives.dropLast().allSatisfy { $0 == 1 })
      #expect(state.keepalives.count > 1)
    }
  }

  @Test func `an idle client that comes back is sent a complete and no rows`() async {
    let source = SimulatedSource()
    source.tick([("a[]", "r1", 1)], grant: ["a[]"])
    let client = ModelClient()
    _ = await stream(source, to: client) { $0.completes.count == 1 }
    let calls = source.state.withLock { $0.calls }
    client.state.withLock { $0.linesLeft = 3 }
    _ = await stream(source, to: client) { $0.completes.count == 2 }
    check(client, against: source, "after \(calls) calls")
    // schema, checkpoint, complete
    #expect(client.state.withLock { $0.linesLeft } == 0)
  }
}
