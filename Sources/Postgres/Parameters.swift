internal import CPostgres

/// A statement's binds as the server reads them, checked before anything is sent.
struct Parameters: Sendable {
  /// The protocol counts parameters in sixteen bits.
  static let limit = 65_535

  /// All the texts, each with a NUL after it.
  private var bytes: [CChar] = []
  /// Where each text begins; nil for NULL.
  private var offsets: [Int?] = []

  init(sql: String, binds: [PostgresValue]) throws(PostgresError) {
    try Self.check(sql)
    guard binds.count <= Self.limit else {
      throw PostgresError(kind: .client, code: "54000", message: "too many parameters")
    }
    offsets.reserveCapacity(binds.count)
    for bind in binds {
      guard let literal = bind.literal else {
        offsets.append(nil)
        continue
      }
      offsets.append(bytes.count)
      var containsNUL = false
      for byte in literal.utf8 {
        if byte == 0 { containsNUL = true }
        bytes.append(CChar(bitPattern: byte))
      }
      if containsNUL {
        throw PostgresError(
          kind: .client, code: "22021", message: "a bound value contains a NUL byte")
      }
      bytes.append(0)
    }
  }

  static func check(_ sql: String) throws(PostgresError) {
    if sql.utf8.contains(0) {
      throw PostgresError(kind: .client, code: "42601", message: "a statement contains a NUL byte")
    }
  }

  /// Sends a prepared statement with these binds; false when libpq refuses.
  func send(_ raw: OpaquePointer, statement: String) -> Bool {
    bytes.withUnsafeBufferPointer { buffer in
      let values = offsets.map { offset in offset.flatMap { buffer.baseAddress?.advanced(by: $0) } }
      return PQsendQueryPrepared(raw, statement, Int32(values.count), values, nil, nil, 0) == 1
    }
  }
}
