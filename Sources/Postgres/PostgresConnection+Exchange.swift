internal import CPostgres

extension PostgresConnection {
  /// What was sent in a pipeline, in order.
  private enum Command {
    case prepare(sql: String, name: String)
    case run

    var isRun: Bool {
      if case .run = self { return true }
      return false
    }
  }

  /// Sends statements, preparing the new ones, and reads all their results.
  func runPipeline(
    _ texts: [String], _ parameters: [Parameters], mayRetry: Bool
  ) async throws -> [PostgresResult] {
    guard let raw = socket.raw, !closed else { throw PostgresError.closed }
    let wasIdle = PQtransactionStatus(raw) == PQTRANS_IDLE
    try await dropOldStatements(for: texts)
    guard socket.raw != nil, !closed else { throw PostgresError.closed }

    guard PQenterPipelineMode(raw) == 1 else { throw abandon(raw) }
    var commands: [Command] = []
    var newNames: [String: String] = [:]
    for (sql, parameters) in zip(texts, parameters) {
      let name: String
      if let known = statements.name(of: sql) ?? newNames[sql] {
        name = known
      } else {
        name = statements.newName()
        newNames[sql] = name
        guard PQsendPrepare(raw, name, sql, 0, nil) == 1 else { throw abandon(raw) }
        commands.append(.prepare(sql: sql, name: name))
      }
      guard parameters.send(raw, statement: name) else { throw abandon(raw) }
      commands.append(.run)
    }
    guard PQpipelineSync(raw) == 1 else { throw abandon(raw) }

    var results: [PostgresResult] = []
    var prepared: [(sql: String, name: String)] = []
    var firstError: PostgresError?
    var position = 0
    do {
      try await socket.exchange { result in
        guard let result else {
          position += 1
          return false
        }
        switch PQresultStatus(result) {
        case PGRES_PIPELINE_SYNC:
          PQclear(result)
          return true
        case PGRES_FATAL_ERROR:
          if firstError == nil {
            firstError = PostgresError(result: result)
            firstError?.statement = commands.prefix(position).count { $0.isRun }
          }
          PQclear(result)
        case PGRES_PIPELINE_ABORTED:
          PQclear(result)
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
          firstError = Self.copyRefused
          PQclear(result)
          return true
        default:
          if position < commands.count, case .prepare(let sql, let name) = commands[position] {
            prepared.append((sql, name))
            PQclear(result)
          } else {
            results.append(PostgresResult(raw: result))
          }
        }
        return false
      }
    } catch {
      throw Self.lost(error, firstError)
    }
    for (sql, name) in prepared { statements.insert(sql, name: name) }
    guard PQexitPipelineMode(raw) == 1 else {
      socket.giveUp()
      throw firstError ?? PostgresError.closed
    }
    guard let error = firstError else { return results }
    if Self.meansStaleStatement(error) {
      for sql in texts { statements.forget(sql) }
      let isIdle = PQtransactionStatus(raw) == PQTRANS_IDLE
      if mayRetry, texts.count == 1, wasIdle, isIdle {
        return try await runPipeline(texts, parameters, mayRetry: false)
      }
    }
    throw error
  }

  /// Sends a script, and the data of a `COPY` if there is one. Returns the rows of its last command.
  func runScript(
    _ script: String, copying next: (@Sendable () async throws -> [UInt8]?)?
  ) async throws -> Int {
    guard let raw = socket.raw, !closed else { throw PostgresError.closed }
    guard PQsendQuery(raw, script) == 1 else { throw abandon(raw) }
    var firstError: PostgresError?
    var affected = 0
    var isCopying = false
    var mustGiveUp = false
    let take: (OpaquePointer?) -> Bool = { result in
      guard let result else { return true }
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_FATAL_ERROR:
        if firstError == nil { firstError = PostgresError(result: result) }
      case PGRES_COPY_IN:
        isCopying = true
        return true
      case PGRES_COPY_OUT, PGRES_COPY_BOTH:
        firstError = Self.copyRefused
        mustGiveUp = true
        return true
      default:
        affected = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? affected
      }
      return false
    }
    var sourceError: (any Error)?
    do {
      try await socket.exchange(take)
      while isCopying {
        isCopying = false
        do {
          guard let next else { throw Self.copyRefused }
          try await sendCopy(next)
        } catch let error as PostgresError where error.isConnectionFailure {
          throw error
        } catch {
          sourceError = error
        }
        // After await: the connection may be gone.
        guard let raw = socket.raw, !closed else { throw PostgresError.closed }
        let message = sourceError == nil ? nil : "the source of the data failed"
        guard PQputCopyEnd(raw, message) == 1 else { throw abandon(raw) }
        try await socket.exchange(take)
      }
    } catch let error as PostgresError {
      throw Self.lost(error, firstError)
    }
    if mustGiveUp { socket.giveUp() }
    if let sourceError { throw sourceError }
    if let firstError { throw firstError }
    return affected
  }

  private func sendCopy(_ next: @Sendable () async throws -> [UInt8]?) async throws {
    while let chunk = try await next() {
      try Task.checkCancellation()
      var rest = chunk[...]
      while !rest.isEmpty {
        let piece = rest.prefix(1 << 16)
        rest = rest.dropFirst(piece.count)
        try await socket.drain()
        guard let raw = socket.raw else { throw PostgresError.closed }
        let result = piece.withUnsafeBytes { bytes in
          PQputCopyData(
            raw, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
        }
        guard result == 1 else { throw abandon(raw) }
      }
    }
    try await socket.drain()
  }

  /// Frees statements on the server when the cache would grow beyond its limit.
  private func dropOldStatements(for texts: [String]) async throws {
    let names = statements.evict(toMakeRoomFor: texts)
    guard let raw = socket.raw, !names.isEmpty, PQtransactionStatus(raw) != PQTRANS_INERROR else {
      return
    }
    let script = names.map { "DEALLOCATE \($0);" }.joined()
    _ = try await runScript(script, copying: nil)
  }

  /// Gives up a connection that libpq refuses to send on, and returns why.
  private func abandon(_ raw: OpaquePointer) -> PostgresError {
    let message = PQerrorMessage(raw).map { String(cString: $0) } ?? ""
    socket.giveUp()
    return .connection(message)
  }

  /// The error of a lost connection: what the server said before it went, if it did.
  private static func lost(_ error: PostgresError, _ said: PostgresError?) -> PostgresError {
    guard var said, error.code.isEmpty else { return error }
    said.kind = .connection
    return said
  }

  /// Whether a prepared statement no longer fits the tables, or is not there any more.
  private static func meansStaleStatement(_ error: PostgresError) -> Bool {
    error.code == "26000"
      || error.code == "0A000" && error.context == nil && error.message.contains("cached plan")
  }

  private static let copyRefused = PostgresError(
    kind: .client, code: "0A000", message: "COPY runs through copyIn only")
}
