import CSQLite

/// One prepared statement. Its owner keeps it; it is finalised with it.
final class SQLiteStatement {
  let handle: OpaquePointer
  private let connection: SQLiteConnection

  init(_ handle: OpaquePointer, of connection: SQLiteConnection) {
    self.handle = handle
    self.connection = connection
  }

  deinit { sqlite3_finalize(handle) }

  // MARK: Running

  /// Advances; false when there are no more rows, and then the statement is ready to be run again.
  @inline(__always)
  func step() throws(ReplicaError) -> Bool {
    let result = sqlite3_step(handle)
    if result == SQLITE_ROW { return true }
    if result == SQLITE_DONE {
      sqlite3_reset(handle)
      return false
    }
    let error = connection.error(result)
    sqlite3_reset(handle)
    throw error
  }

  /// Runs to the end, ignoring rows.
  @inline(__always)
  func run() throws(ReplicaError) {
    while try step() {}
  }

  func reset() { sqlite3_reset(handle) }

  func clearBindings() { sqlite3_clear_bindings(handle) }

  // MARK: Binds

  @inline(__always)
  func bind(_ value: Int64, at index: Int32) { sqlite3_bind_int64(handle, index, value) }

  @inline(__always)
  func bind(_ value: Double, at index: Int32) { sqlite3_bind_double(handle, index, value) }

  func bindNull(at index: Int32) { sqlite3_bind_null(handle, index) }

  /// Binds UTF-8 in place: the bytes must stay until the statement has run.
  @inline(__always)
  func bind(text: UnsafeBufferPointer<UInt8>, at index: Int32) {
    // An empty buffer may have no address, which SQLite would take for NULL.
    guard let base = text.baseAddress else {
      sqlite3_bind_text(handle, index, "", 0, nil)
      return
    }
    base.withMemoryRebound(to: CChar.self, capacity: text.count) {
      _ = sqlite3_bind_text(handle, index, $0, Int32(text.count), nil)
    }
  }

  /// Binds bytes in place: they must stay until the statement has run.
  func bind(blob: UnsafeBufferPointer<UInt8>, at index: Int32) {
    sqlite3_bind_blob(handle, index, blob.baseAddress, Int32(blob.count), nil)
  }

  /// Binds UTF-8 that SQLite copies.
  func bind(copyOf text: UnsafeBufferPointer<UInt8>, at index: Int32) {
    guard let base = text.baseAddress else { return bind(text: text, at: index) }
    base.withMemoryRebound(to: CChar.self, capacity: text.count) {
      _ = sluice_bind_text_copy(handle, index, $0, Int32(text.count))
    }
  }

  func bind(_ value: SQLiteValue, at index: Int32) throws(ReplicaError) {
    let result: Int32
    switch value {
    case .null: result = sqlite3_bind_null(handle, index)
    case .integer(let value): result = sqlite3_bind_int64(handle, index, value)
    case .real(let value): result = sqlite3_bind_double(handle, index, value)
    case .text(let value):
      var copy = value
      result = copy.withUTF8 { bytes in
        guard let base = bytes.baseAddress else {
          return sluice_bind_text_copy(handle, index, "", 0)
        }
        return base.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
          sluice_bind_text_copy(handle, index, $0, Int32(bytes.count))
        }
      }
    case .blob(let value):
      result = value.withUnsafeBytes { bytes in
        if bytes.isEmpty { return sqlite3_bind_zeroblob(handle, index, 0) }
        return sluice_bind_blob_copy(handle, index, bytes.baseAddress, Int32(bytes.count))
      }
    }
    guard result == SQLITE_OK else { throw connection.error(result) }
  }

  // MARK: Columns

  var columnCount: Int32 { sqlite3_column_count(handle) }

  func name(_ column: Int32) -> String {
    sqlite3_column_name(handle, column).map { String(cString: $0) } ?? ""
  }

  func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

  /// The bytes of a text or blob, valid until the statement moves.
  func bytes(_ column: Int32) -> UnsafeBufferPointer<UInt8> {
    guard let base = sqlite3_column_blob(handle, column) else {
      return UnsafeBufferPointer(start: nil, count: 0)
    }
    let count = Int(sqlite3_column_bytes(handle, column))
    return UnsafeBufferPointer(start: base.assumingMemoryBound(to: UInt8.self), count: count)
  }

  func text(_ column: Int32) -> String? {
    isNull(column) ? nil : String(decoding: bytes(column), as: UTF8.self)
  }

  func value(_ column: Int32) -> SQLiteValue {
    switch sqlite3_column_type(handle, column) {
    case SQLITE_INTEGER: .integer(int64(column))
    case SQLITE_FLOAT: .real(sqlite3_column_double(handle, column))
    case SQLITE_TEXT: .text(String(decoding: bytes(column), as: UTF8.self))
    case SQLITE_BLOB: .blob(Array(bytes(column)))
    default: .null
    }
  }

  var row: [SQLiteValue] { (0..<columnCount).map { value($0) } }
}
