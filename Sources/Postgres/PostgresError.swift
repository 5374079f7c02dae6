internal import CPostgres

/// An error of the server, or of the way to it.
///
/// `description` shows no data: PostgreSQL's messages can hold values of rows. `debugDescription` shows
/// everything.
package struct PostgresError: Error, Sendable {
  /// Where the error arose.
  package enum Kind: Sendable, Equatable {
    /// The server refused a statement; the connection is usable.
    case server
    /// The connection could not be made, was lost, or had been closed.
    case connection
    /// A statement was refused before it was sent.
    case client
    /// No connection of a pool became free in time, or the pool is closed.
    case pool
  }

  package var kind: Kind
  /// The SQLSTATE; "" when the connection failed without one; `SLUICE_…` for the pool's own.
  package var code: String
  package var message: String
  package var detail: String?
  package var hint: String?
  package var context: String?
  /// Where in the statement's text the error is, in characters from 1.
  package var position: Int?
  package var schema: String?
  package var table: String?
  package var column: String?
  package var constraint: String?
  /// The place in its pipeline of the statement that failed, from 0.
  package var statement: Int?

  package init(kind: Kind, code: String, message: String) {
    self.kind = kind
    self.code = code
    self.message = message
  }

  /// Whether the connection is of no more use; whether a running COMMIT took effect is then unknown.
  package var isConnectionFailure: Bool { kind == .connection }

  /// Whether the same transaction can be expected to succeed when tried again.
  package var isRetryable: Bool { code == "40001" || code == "40P01" }
}

extension PostgresError: CustomStringConvertible, CustomDebugStringConvertible {
  package var description: String {
    switch kind {
    case .server, .client:
      let place = [("table", table), ("column", column), ("constraint", constraint)]
        .compactMap { name, value in value.map { ", \(name) \($0)" } }.joined()
      return "PostgreSQL error \(code)\(place)"
    case .connection:
      return "PostgreSQL connection failed" + (code.isEmpty ? "" : " (\(code))")
    case .pool:
      return "\(code): \(message)"
    }
  }

  package var debugDescription: String {
    let extras = [("DETAIL", detail), ("HINT", hint), ("CONTEXT", context)]
      .compactMap { name, value in value.map { "\n\(name): \($0)" } }.joined()
    let place = position.map { " at character \($0)" } ?? ""
    return "\(description): \(message)\(place)\(extras)"
  }
}

extension PostgresError {
  /// The error a result carries.
  init(result: OpaquePointer, kind: Kind = .server) {
    func field(_ name: sluice_diagnostic) -> String? {
      PQresultErrorField(result, Int32(name.rawValue)).map { String(cString: $0) }
    }
    self.init(
      kind: kind, code: field(SLUICE_DIAG_SQLSTATE) ?? "",
      message: field(SLUICE_DIAG_MESSAGE_PRIMARY)
        ?? PQresultErrorMessage(result).map { Self.trimmed(String(cString: $0)) } ?? "")
    detail = field(SLUICE_DIAG_MESSAGE_DETAIL)
    hint = field(SLUICE_DIAG_MESSAGE_HINT)
    context = field(SLUICE_DIAG_CONTEXT)
    position = field(SLUICE_DIAG_STATEMENT_POSITION).flatMap { Int($0) }
    schema = field(SLUICE_DIAG_SCHEMA_NAME)
    table = field(SLUICE_DIAG_TABLE_NAME)
    column = field(SLUICE_DIAG_COLUMN_NAME)
    constraint = field(SLUICE_DIAG_CONSTRAINT_NAME)
  }

  /// Why no connection was made, from libpq's verbose text: `FATAL:  3D000: database "x" does not
  /// exist`, then lines about where in the server that is. The first word is in the server's language.
  init(refusal text: String) {
    self = .connection(text)
    for line in text.split(whereSeparator: \.isNewline) {
      let parts = line.split(separator: ":", omittingEmptySubsequences: false)
      for (index, part) in parts.enumerated().dropFirst() where index < parts.count - 1 {
        let state = part.drop { $0 == " " }
        guard state.utf8.count == 5, state.utf8.contains(where: { $0 < 0x3A }),
          state.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
        else { continue }
        code = String(state)
        message = parts[(index + 1)...].joined(separator: ":").drop { $0 == " " }.description
        return
      }
    }
  }

  static func connection(_ message: String) -> PostgresError {
    PostgresError(kind: .connection, code: "", message: trimmed(message))
  }

  static let closed = PostgresError.connection("the connection is closed")

  private static func trimmed(_ message: String) -> String {
    var message = Substring(message)
    while message.last?.isNewline == true { message.removeLast() }
    return String(message)
  }
}
