internal import CPostgres
package import EventLoop
internal import Synchronization

/// A connection to PostgreSQL, on the thread of its event loop.
///
/// Calls from several tasks are carried out one after the other, in the order they were made. A cancelled
/// task's call is withdrawn while it waits for its turn, and cancelled on the server while it runs; either
/// way it throws `CancellationError`, and the connection stays usable.
///
/// ```swift
/// let connection = try await PostgresConnection.connect(configuration, on: loop)
/// let result = try await connection.query("SELECT id, name FROM users WHERE age > $1", [21])
/// ```
///
/// A connection that is lost stays lost: make another, or use a `PostgresPool`.
package actor PostgresConnection {
  package nonisolated let loop: EventLoop
  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    loop.asUnownedSerialExecutor()
  }

  /// Whether the connection was lost or closed.
  package nonisolated var closed: Bool { socket.isClosed }

  nonisolated let socket: PostgresSocket
  nonisolated let cancelTimeout: Duration
  var statements = StatementCache()
  var turns = TurnQueue()
  var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
  var running: Int?
  var cancelIsWanted = false
  var cancelIsInFlight = false
  var cancelDeadline: LoopEvent?
  var cancelWaiter: CheckedContinuation<Void, Never>?
  var listeners: [String: [Int: AsyncStream<PostgresNotification>.Continuation]] = [:]
  var nextID = 0

  private init(socket: PostgresSocket, loop: EventLoop, cancelTimeout: Duration) {
    self.socket = socket
    self.loop = loop
    self.cancelTimeout = cancelTimeout
  }

  deinit {
    let socket = socket
    for listener in listeners.values.flatMap(\.values) { listener.finish() }
    loop.onLoop { socket.close() }
  }

  // MARK: Opening and closing

  /// Connects, and gives the session its settings.
  package static func connect(
    _ configuration: PostgresConfiguration, on loop: EventLoop
  ) async throws -> PostgresConnection {
    let socket = try await PostgresSocket.open(configuration, on: loop)
    let connection = PostgresConnection(
      socket: socket, loop: loop, cancelTimeout: configuration.cancelTimeout)
    do {
      try await connection.start(configuration)
      return connection
    } catch {
      await connection.close()
      throw error
    }
  }

  private func start(_ configuration: PostgresConfiguration) async throws {
    socket.onNotification = { [weak self] notification in
      // The socket calls on the loop, which is this actor's executor.
      self?.assumeIsolated { $0.deliver(notification) }
    }
    socket.onClose = { [weak self] in
      // As above.
      self?.assumeIsolated { $0.finishListeners() }
    }
    if !configuration.settings.isEmpty {
      let settings = configuration.settings.sorted { $0.key < $1.key }
      let calls = settings.indices.map {
        "pg_catalog.set_config($\(2 * $0 + 1), $\(2 * $0 + 2), false)"
      }
      _ = try await query(
        "SELECT " + calls.joined(separator: ", "),
        settings.flatMap { [.text($0.key), .text($0.value)] })
    }
  }

  /// Closes the connection. A running call fails.
  package func close() {
    socket.close()
  }

  /// The server's process that serves this connection.
  package var backendProcessID: Int32 {
    socket.raw.map { PQbackendPID($0) } ?? 0
  }

  /// Whether a transaction is open on the connection, failed or not.
  package var isInTransaction: Bool {
    guard let raw = socket.raw else { return false }
    return PQtransactionStatus(raw) != PQTRANS_IDLE
  }

  // MARK: Statements

  /// Runs one statement. It is prepared the first time its text is seen on this connection.
  package func query(_ sql: String, _ binds: [PostgresValue] = []) async throws -> PostgresResult {
    let results = try await pipeline([(sql, binds)])
    return results[0]
  }

  /// Runs statements in one round trip. Outside a transaction block they are one transaction: when one
  /// fails, none has taken effect, and its error is thrown.
  package func pipeline(
    _ statements: [(sql: String, binds: [PostgresValue])]
  ) async throws -> [PostgresResult] {
    try await pipeline(statements, isShielded: false)
  }

  func pipeline(
    _ statements: [(sql: String, binds: [PostgresValue])], isShielded: Bool
  ) async throws -> [PostgresResult] {
    guard !statements.isEmpty else { return [] }
    let parameters = try statements.map { try Parameters(sql: $0.sql, binds: $0.binds) }
    return try await inTurn(isShielded: isShielded) {
      try await self.runPipeline(statements.map(\.sql), parameters, mayRetry: true)
    }
  }

  /// Runs a script of statements without parameters, in the simple protocol: as one transaction, unless
  /// the script says otherwise. Results are dropped. `COPY` to or from the client does not belong here.
  package func execute(_ script: String) async throws {
    try Parameters.check(script)
    _ = try await inTurn(isShielded: false) {
      try await self.runScript(script, copying: nil)
    }
  }

  /// Runs `COPY … FROM STDIN` with the bytes that `next` returns, until it returns nil. An error thrown by
  /// `next` fails the copy and is thrown. Returns how many rows were copied.
  package func copyIn(
    _ sql: String, _ next: @escaping @Sendable () async throws -> [UInt8]?
  ) async throws -> Int {
    try Parameters.check(sql)
    return try await inTurn(isShielded: false) {
      try await self.runScript(sql, copying: next)
    }
  }

  // MARK: Transactions

  /// Runs `body` between BEGIN and COMMIT; when it throws, between BEGIN and ROLLBACK.
  ///
  /// Committing cannot be cancelled. If the error thrown is a connection failure, whether the
  /// transaction took effect is unknown. Other tasks' calls on this connection would fall into the
  /// transaction: a connection of a pool has one user.
  package nonisolated func transaction<R>(
    isolation: PostgresIsolation = .readCommitted, readOnly: Bool = false,
    _ body: () async throws -> R
  ) async throws -> R {
    let mode = readOnly ? " READ ONLY" : ""
    _ = try await query("BEGIN ISOLATION LEVEL \(isolation.rawValue)\(mode)")
    let result: R
    do {
      result = try await body()
      try Task.checkCancellation()
    } catch {
      await rollBack()
      throw error
    }
    do {
      let commit = try await pipeline([("COMMIT", [])], isShielded: true)
      // The answer to COMMIT in a failed transaction is ROLLBACK, and no error.
      guard commit[0].commandTag == "COMMIT" else {
        throw PostgresError(
          kind: .server, code: "25P02", message: "a statement failed; the transaction was undone")
      }
    } catch {
      await rollBack()
      throw error
    }
    return result
  }

  /// Leaves the connection without a transaction, or closed.
  private func rollBack() async {
    guard !closed, isInTransaction else { return }
    do {
      _ = try await pipeline([("ROLLBACK", [])], isShielded: true)
    } catch {
      close()
    }
  }

  // MARK: Notifications

  /// Listens on a channel. The stream ends when the connection is lost. It holds the newest thousand
  /// notifications not yet taken.
  package func listen(_ channel: String) async throws -> AsyncStream<PostgresNotification> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: PostgresNotification.self, bufferingPolicy: .bufferingNewest(1000))
    nextID += 1
    let id = nextID
    listeners[channel, default: [:]][id] = continuation
    continuation.onTermination = { [weak self, loop] _ in
      loop.onLoop { [weak self] in
        // On the loop, which is this actor's executor.
        self?.assumeIsolated { $0.listeners[channel]?[id] = nil }
      }
    }
    do {
      let name = channel.split(separator: "\"", omittingEmptySubsequences: false)
        .joined(separator: "\"\"")
      try await execute("LISTEN \"\(name)\"")
    } catch {
      continuation.finish()
      throw error
    }
    if closed { continuation.finish() }
    return stream
  }

  private func deliver(_ notification: PostgresNotification) {
    for listener in (listeners[notification.channel] ?? [:]).values { listener.yield(notification) }
  }

  private func finishListeners() {
    let all = listeners.values.flatMap(\.values)
    listeners = [:]
    for listener in all { listener.finish() }
  }
}

/// The isolation of a transaction.
package enum PostgresIsolation: String, Sendable {
  case readCommitted = "READ COMMITTED"
  case repeatableRead = "REPEATABLE READ"
  case serializable = "SERIALIZABLE"
}
