import HTTPTransport
import SQLiteReplica
import SyncProtocol
import Synchronization
import Testing

@testable import SluiceClient

@Suite("Subscriptions of a client")
struct SubscriptionTests {
  private let stamp = "2026-11-30T02:05:11.123456Z"

  /// A first checkpoint with one bucket of no rows, for the subscriptions at these places.
  private func lines(
    tick: Int64 = 1, priority: Int = 3, places: [Int] = [], streams: [StreamState]? = nil
  ) -> [[UInt8]] {
    [
      PublishedSchema(tables: []).encodedLine(),
      CheckpointLine(
        tick: tick, stamp: stamp, id: tick * 16, full: true,
        buckets: [
          BucketState(
            name: "b", priority: priority, count: 0, digest: 0, start: 16, reset: false,
            subscriptions: places)
        ], streams: streams
      ).encodedLine(), CompleteLine(tick: tick).encodedLine(),
    ]
  }

  private func client(
    _ folder: TemporaryFolder, _ transport: any HTTPTransport, defaults: Bool = true
  ) async throws -> SyncClient {
    var options = SyncClient.Options()
    options.sleep = { _ in }
    options.jitter = { 1 }
    options.includesDefaults = defaults
    return try SyncClient(
      url: "http://gateway", replica: try await Replica.open(path: folder.path("r.db")),
      options: options, transport: transport
    ) { "token" }
  }

  private func request(_ transport: ScriptedTransport, _ number: Int) throws -> StreamRequest {
    try #require(transport.requests.count > number)
    return try StreamRequest(decoding: try #require(transport.requests[number].body))
  }

  /// Waits for a status, for ten seconds at most.
  private func wait(
    for client: SyncClient, until condition: @escaping @Sendable (SyncStatus) -> Bool
  ) async throws {
    for _ in 0..<1000 {
      if condition(client.status) { return }
      try await Task.sleep(for: .milliseconds(10))
    }
    Issue.record("what was waited for did not come: \(client.status)")
  }

  @Test("are sent, each once, and their outcome is in the status")
  func outcome() async throws {
    let folder = try TemporaryFolder()
    let streams = [
      StreamState(name: "mine", isDefault: true),
      StreamState(name: "lists", isDefault: false),
      StreamState(
        name: "nots", isDefault: false,
        errors: [
          SubscriptionError(subscription: 1, code: "SLUICE_STREAM_UNKNOWN", message: "none")
        ]),
    ]
    let transport = ScriptedTransport([.init(lines: lines(places: [0], streams: streams))])
    let client = try await client(folder, transport)
    _ = client.subscribe("lists", parameters: ["list": "a1", "and": [1, nil]], priority: 1)
    _ = client.subscribe("nots")
    _ = client.subscribe("lists", parameters: ["and": [1, nil], "list": "a1"], priority: 1)
    try await client.syncOnce()
    let request = try request(transport, 0)
    let parameters = #"{"and":[1,null],"list":"a1"}"#
    #expect(
      request.subscriptions == [
        StreamSubscription(stream: "lists", parametersJSON: parameters, overridePriority: 1),
        StreamSubscription(stream: "nots"),
      ])
    #expect(request.includeDefaults)
    let statuses = client.status.subscriptions
    #expect(statuses.map(\.stream) == ["mine", "lists", "nots"])
    #expect(statuses.map(\.parameters) == [nil, parameters, "{}"])
    #expect(statuses.map(\.hasSynced) == [true, true, false])
    #expect(statuses.map(\.failure?.code) == [nil, nil, "SLUICE_STREAM_UNKNOWN"])
  }

  @Test("that change open the stream again at once, from where the replica stands")
  func changes() async throws {
    let folder = try TemporaryFolder()
    let open = { ScriptedTransport.Answer(lines: self.lines(tick: $0), isOpen: true) }
    let transport = ScriptedTransport([open(1), open(2), open(3)])
    let client = try await client(folder, transport, defaults: false)
    let running = Task { try await client.run() }
    try await wait(for: client) { $0.lastCheckpoint?.tick == 1 }
    let first = client.subscribe("lists", parameters: ["list": "a1"])
    try await wait(for: client) { $0.lastCheckpoint?.tick == 2 }
    // The same once more asks for nothing else.
    let second = client.subscribe("lists", parameters: ["list": "a1"])
    first.cancel()
    first.cancel()
    try await Task.sleep(for: .milliseconds(50))
    #expect(transport.requests.count == 2)
    second.cancel()
    try await wait(for: client) { $0.lastCheckpoint?.tick == 3 }
    #expect(client.status.subscriptions.isEmpty && client.status.failure == nil)
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
    let requests = try (0..<3).map { try request(transport, $0) }
    #expect(requests.map(\.subscriptions.count) == [0, 1, 0])
    #expect(requests.allSatisfy { !$0.includeDefaults })
    #expect(
      requests.map { $0.buckets["b"]?.id } == [nil, 16, 32])
  }

  @Test("that change while the gateway is being asked are sent in the next request")
  func changesWhileConnecting() async throws {
    let folder = try TemporaryFolder()
    let transport = SilentTransport()
    let client = try await client(folder, transport)
    let running = Task { try await client.run() }
    try await transport.waitForRequests(1)
    let subscription = client.subscribe("lists")
    try await transport.waitForRequests(2)
    #expect(transport.bodies.last?.subscriptions == [StreamSubscription(stream: "lists")])
    subscription.cancel()
    try await transport.waitForRequests(3)
    #expect(transport.bodies.last?.subscriptions == [])
    #expect(client.status.failure == nil)
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
  }

  @Test("that change end the wait after a failure")
  func changesWhileWaiting() async throws {
    let folder = try TemporaryFolder()
    let transport = ScriptedTransport([
      .init(status: 422), .init(lines: lines(), isOpen: true),
    ])
    var options = SyncClient.Options()
    options.sleep = { _ in try await Task.sleep(for: .seconds(3600)) }
    let client = try SyncClient(
      url: "http://gateway", replica: try await Replica.open(path: folder.path("r.db")),
      options: options, transport: transport
    ) { "token" }
    let tooMuch = client.subscribe("everything")
    let running = Task { try await client.run() }
    try await wait(for: client) { status in
      if case .waiting = status.connection { return true }
      return false
    }
    // The status is told a moment before the wait begins.
    try await Task.sleep(for: .milliseconds(50))
    tooMuch.cancel()
    try await wait(for: client) { $0.lastCheckpoint?.tick == 1 }
    #expect(try request(transport, 1).subscriptions == [])
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
  }

  @Test("are synced as soon as everything of them is visible, and stay so")
  func partial() {
    var tracker = SubscriptionTracker()
    let subscriptions = ["a", "b", "c"].map { StreamSubscription(stream: $0) }
    func bucket(_ name: BucketName, _ priority: Int, _ places: [Int]) -> BucketState {
      BucketState(
        name: name, priority: priority, count: 0, digest: 0, start: 0, reset: false,
        subscriptions: places)
    }
    tracker.open(subscriptions)
    tracker.announced(
      CheckpointLine(
        tick: 1, stamp: stamp, id: 16, full: true,
        buckets: [bucket("x", 0, [0]), bucket("y", 2, [1]), bucket("z", 1, [0])]))
    #expect(tracker.statuses.map(\.hasSynced) == [false, false, false])
    tracker.applied(priority: 0)
    #expect(tracker.statuses.map(\.hasSynced) == [false, false, false])
    tracker.applied(priority: 1)
    #expect(tracker.statuses.map(\.hasSynced) == [true, false, false])
    tracker.open([subscriptions[2], subscriptions[0]])
    #expect(tracker.statuses.map(\.hasSynced) == [false, true])
    tracker.applied(priority: nil)
    #expect(tracker.statuses.map(\.hasSynced) == [true, true])
    tracker.open([])
    tracker.open(subscriptions)
    #expect(tracker.statuses.map(\.hasSynced) == [false, false, false])
  }
}

/// Never answers, and lets itself be cancelled.
private final class SilentTransport: HTTPTransport {
  private let requests = Mutex<[StreamRequest]>([])

  var bodies: [StreamRequest] { requests.withLock(\.self) }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let body = try StreamRequest(decoding: request.body ?? [])
    requests.withLock { $0.append(body) }
    try await Task.sleep(for: .seconds(3600))
    throw TransportError(.unreachable, "nobody there")
  }

  func waitForRequests(_ count: Int) async throws {
    for _ in 0..<1000 where bodies.count < count { try await Task.sleep(for: .milliseconds(10)) }
    #expect(bodies.count == count)
  }
}
