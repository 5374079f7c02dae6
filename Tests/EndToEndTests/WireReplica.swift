import Foundation
import Synchronization

/// A client that speaks the protocol over a socket of its own and keeps what it is told, on a thread of its own.
final class WireReplica: Sendable {
  struct Status {
    var state = WireState()
    /// What the last complete checkpoint shows.
    var content: Content = [:]
    var isOnline = false
    var connections = 0
    var bytesReceived = 0
    var lastError: String? {
      didSet { if let lastError { errors.append(lastError) } }
    }
    var errors: [String] = []
    var lastStatus = 0
    var completes = 0
    /// Ends the current connection when it changes.
    var generation = 0
    /// The subscriptions that the next connection asks for, as JSON.
    var subscriptions = "[]"
  }

  let name: String
  private let port: @Sendable () -> Int
  private let token: @Sendable () -> String
  private let onComplete: @Sendable (Int, Content) -> Void
  private let keepsStaged: @Sendable () -> Bool
  private let status = Mutex(Status())

  init(
    _ name: String, port: @escaping @Sendable () -> Int, token: @escaping @Sendable () -> String,
    keepsStaged: @escaping @Sendable () -> Bool = { true },
    onComplete: @escaping @Sendable (Int, Content) -> Void = { _, _ in }
  ) {
    self.name = name
    self.port = port
    self.token = token
    self.keepsStaged = keepsStaged
    self.onComplete = onComplete
  }

  var content: Content { status.withLock { $0.content } }
  var tick: Int { status.withLock { $0.state.tick } }
  var violations: [String] { status.withLock { $0.state.violations } }
  var buckets: [String] { status.withLock { $0.state.committed.keys.sorted() } }
  var opsReceived: Int { status.withLock { $0.state.opsReceived } }
  var keysReceived: Set<String> { status.withLock { $0.state.keysReceived } }
  var troubles: [String] { status.withLock { $0.state.troubles } }
  var resets: Int { status.withLock { $0.state.resets } }
  var bytesReceived: Int { status.withLock { $0.bytesReceived } }
  var connections: Int { status.withLock { $0.connections } }
  var completes: Int { status.withLock { $0.completes } }
  var lastError: String? { status.withLock { $0.lastError } }
  /// Every error that a connection ended with.
  var errors: [String] { status.withLock { $0.errors } }
  var lastStatus: Int { status.withLock { $0.lastStatus } }
  var stagedOps: Int {
    status.withLock { $0.state.staged.values.reduce(0) { $0 + $1.entries.count } }
  }

  func ids(_ table: String) -> Set<String> { Set(content[table]?.keys.map { $0 } ?? []) }

  /// What to subscribe to from the next connection on: a JSON array of `{"stream":…,"parameters":…}`.
  func subscribe(_ subscriptions: String) {
    status.withLock { $0.subscriptions = subscriptions }
  }

  /// Connects and stays connected, trying again whenever the line is cut, until `disconnect()`.
  func connect() {
    let generation = status.withLock { status in
      status.generation += 1
      status.isOnline = true
      return status.generation
    }
    let thread = Thread { [self] in
      while isCurrent(generation) {
        do {
          try converse(generation)
        } catch {
          status.withLock { $0.lastError = "\(error)" }
        }
        // A gateway that is full says 503; coming back at once would only keep it full.
        let isTurnedAway = status.withLock { $0.lastStatus == 503 }
        if isCurrent(generation) {
          Thread.sleep(forTimeInterval: isTurnedAway ? .random(in: 0.2...1.2) : 0.05)
        }
      }
    }
    thread.stackSize = 4 << 20
    thread.start()
  }

  func disconnect() {
    status.withLock { status in
      status.generation += 1
      status.isOnline = false
    }
  }

  /// Connects, waits for a complete checkpoint that is newer than any before, and goes offline.
  func sync(within seconds: Double = 60) async throws {
    let before = completes
    connect()
    defer { disconnect() }
    try await eventually(
      "\(name) has a checkpoint (\(lastError ?? "no error"))", within: seconds, every: 0.01
    ) {
      completes > before
    }
  }

  /// Waits until the replica shows what `condition` wants.
  func shows(
    _ what: String, within seconds: Double = 30, _ condition: @Sendable (Content) -> Bool
  ) async throws {
    try await eventually("\(name) shows \(what)", within: seconds, every: 0.01) {
      condition(content)
    }
  }

  private func isCurrent(_ generation: Int) -> Bool {
    status.withLock { $0.generation == generation && $0.isOnline }
  }

  private func converse(_ generation: Int) throws {
    let connection = try WireConnection(port: port()) { [self] in !isCurrent(generation) }
    let held = status.withLock { status in
      status.connections += 1
      return status.state.beginConnection(keepingStaged: keepsStaged())
    }
    let (hash, wanted) = status.withLock { ($0.state.schemaHash, $0.subscriptions) }
    let subscriptions = try JSONSerialization.jsonObject(with: Data(wanted.utf8))
    let request: [String: Any] = [
      "client_id": name, "buckets": held, "parameters": [String: Any](),
      "subscriptions": subscriptions, "include_defaults": true, "schema": hash ?? NSNull(),
    ]
    let body = try JSONSerialization.data(withJSONObject: request)
    try connection.send(
      "POST", "/v1/stream", token: token(), body: String(decoding: body, as: UTF8.self))
    try connection.readHead()
    status.withLock { $0.lastStatus = connection.status }
    guard connection.status == 200 else {
      let body = try connection.wholeBody()
      throw WireConnection.Closed(
        description: "\(connection.status) \(String(decoding: body, as: UTF8.self))")
    }
    var counted = 0
    while let line = try connection.bodyLine() {
      let completed = try status.withLock { status -> (Int, Content)? in
        guard status.generation == generation else { return nil }
        status.bytesReceived += connection.bytesRead - counted
        counted = connection.bytesRead
        switch try status.state.receive(line) {
        case .none: return nil
        case .complete(let tick):
          status.completes += 1
          status.content = status.state.content
          return (tick, status.content)
        case .error(let code, let message):
          status.lastError = "\(code) \(message)"
          return nil
        }
      }
      if let completed { onComplete(completed.0, completed.1) }
    }
  }
}
