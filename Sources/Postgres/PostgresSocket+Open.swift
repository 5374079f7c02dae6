internal import CPostgres
internal import Dispatch
internal import EventLoop
internal import Glibc

extension PostgresSocket {
  /// Makes a connection, within the configuration's time.
  static func open(
    _ configuration: PostgresConfiguration, on loop: EventLoop
  ) async throws -> PostgresSocket {
    let socket = try await begin(configuration, on: loop)
    // Polling belongs to the loop's thread.
    return try await Opener(socket: socket, loop: loop).finish(within: configuration.connectTimeout)
  }

  /// Begins to connect. libpq looks host names up meanwhile, and blocks.
  private static func begin(
    _ configuration: PostgresConfiguration, on loop: EventLoop
  ) async throws -> PostgresSocket {
    try Parameters.check(configuration.connectionString)
    if let database = configuration.database { try Parameters.check(database) }
    // libpq reads the first dbname as a connection string, and one after it as a name.
    let options =
      [("dbname", configuration.connectionString)]
      + (configuration.database.map { [("dbname", $0)] } ?? []) + [
        ("fallback_application_name", configuration.applicationName),
        ("client_encoding", "UTF8"),
      ]
    let socket = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        let keys = options.map { strdup($0.0) }
        let values = options.map { strdup($0.1) }
        let raw = PQconnectStartParams(
          keys.map { UnsafePointer($0) } + [nil], values.map { UnsafePointer($0) } + [nil], 1)
        for text in keys + values { free(text) }
        continuation.resume(returning: raw.map { PostgresSocket(raw: $0, loop: loop) })
      }
    }
    guard let socket else { throw PostgresError.connection("no memory for a connection") }
    return socket
  }

  /// Polls a connection on its loop.
  private actor Opener {
    private let socket: PostgresSocket
    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(socket: PostgresSocket, loop: EventLoop) {
      self.socket = socket
      self.loop = loop
    }

    func finish(within timeout: Duration) async throws -> PostgresSocket {
      let deadline = loop.after(timeout) { [socket] in socket.giveUp() }
      defer { deadline.cancel() }
      return try await withTaskCancellationHandler {
        do {
          try await poll()
          return socket
        } catch {
          socket.close()
          throw error
        }
      } onCancel: { [socket, loop] in
        loop.onLoop { socket.giveUp() }
      }
    }

    private func poll() async throws {
      var next: LoopReadiness = .write
      guard let raw = socket.raw else { throw PostgresError.closed }
      // Why a connection is refused is told in a text alone, which holds the SQLSTATE only then.
      PQsetErrorVerbosity(raw, PQERRORS_VERBOSE)
      guard PQstatus(raw) != CONNECTION_BAD else { throw Self.refusal(raw) }
      while true {
        await socket.waitWhileConnecting(for: next)
        try Task.checkCancellation()
        guard let raw = socket.raw, !socket.isClosed else {
          throw PostgresError.connection("no connection within the time allowed")
        }
        switch PQconnectPoll(raw) {
        case PGRES_POLLING_OK:
          PQsetErrorVerbosity(raw, PQERRORS_DEFAULT)
          socket.startReading()
          return
        case PGRES_POLLING_READING: next = .read
        case PGRES_POLLING_WRITING: next = .write
        default: throw Self.refusal(raw)
        }
      }
    }

    private static func refusal(_ raw: OpaquePointer) -> PostgresError {
      PostgresError(refusal: PQerrorMessage(raw).map { String(cString: $0) } ?? "")
    }
  }
}
