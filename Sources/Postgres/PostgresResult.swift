internal import CPostgres

/// The whole result of one statement, in text format.
///
/// The values stay where libpq put them: `withBytes` lends them without a copy, `string` makes a copy.
/// Rows and columns count from 0; an index out of range is a programmer error.
///
/// `@unchecked`: a received `PGresult` is only read, from any thread, and freed once.
package final class PostgresResult: @unchecked Sendable {
  private let raw: OpaquePointer

  package let rowCount: Int
  package let columnCount: Int

  /// Takes over the result.
  init(raw: OpaquePointer) {
    self.raw = raw
    rowCount = Int(PQntuples(raw))
    columnCount = Int(PQnfields(raw))
  }

  deinit {
    PQclear(raw)
  }

  /// The memory that it takes.
  package var byteCount: Int { PQresultMemorySize(raw) }

  package var columnNames: [String] {
    (0..<columnCount).map { column in
      PQfname(raw, Int32(column)).map { String(cString: $0) } ?? ""
    }
  }

  /// The rows inserted, updated, deleted or selected; 0 for other commands.
  package var affectedRows: Int {
    PQcmdTuples(raw).flatMap { Int(String(cString: $0)) } ?? 0
  }

  /// The command as the server names it, such as `COMMIT` or `INSERT 0 3`.
  package var commandTag: String {
    PQcmdStatus(raw).map { String(cString: $0) } ?? ""
  }

  /// Lends the bytes of a value, or nil for NULL. They live as long as the result.
  @inline(__always)
  package func withBytes<R, E: Error>(
    row: Int, column: Int, _ body: (UnsafeRawBufferPointer?) throws(E) -> R
  ) throws(E) -> R {
    try body(bytes(row, column))
  }

  package func isNull(_ row: Int, _ column: Int) -> Bool {
    bytes(row, column) == nil
  }

  package subscript(row: Int, column: Int) -> String? { string(row, column) }

  package func string(_ row: Int, _ column: Int) -> String? {
    bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The value as an integer; nil when it is NULL or no integer of 64 bits.
  package func int(_ row: Int, _ column: Int) -> Int64? {
    guard let bytes = bytes(row, column), !bytes.isEmpty else { return nil }
    let isNegative = bytes[0] == UInt8(ascii: "-")
    let digits = isNegative ? bytes.dropFirst() : bytes[...]
    guard !digits.isEmpty else { return nil }
    var value: Int64 = 0
    for byte in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      let digit = Int64(byte - UInt8(ascii: "0"))
      let (product, overflow1) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflow2) =
        isNegative
        ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      guard !overflow1, !overflow2 else { return nil }
      value = sum
    }
    return value
  }

  /// The value as a boolean; nil when it is NULL or no boolean.
  package func bool(_ row: Int, _ column: Int) -> Bool? {
    guard let bytes = bytes(row, column), bytes.count == 1 else { return nil }
    return switch bytes[0] {
    case UInt8(ascii: "t"): true
    case UInt8(ascii: "f"): false
    default: nil
    }
  }

  private func bytes(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer? {
    precondition(
      row >= 0 && row < rowCount && column >= 0 && column < columnCount,
      "no such row or column in the result")
    let (row, column) = (Int32(truncatingIfNeeded: row), Int32(truncatingIfNeeded: column))
    if PQgetisnull(raw, row, column) != 0 { return nil }
    return UnsafeRawBufferPointer(
      start: PQgetvalue(raw, row, column), count: Int(PQgetlength(raw, row, column)))
  }
}
