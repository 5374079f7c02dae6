import CSQLite

/// One open database. Lives on one actor; closes itself.
final class SQLiteConnection {
  fileprivate let handle: OpaquePointer

  init(path: String, readOnly: Bool = false) throws(ReplicaError) {
    var opened: OpaquePointer?
    let flags =
      (readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
      | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let result = sqlite3_open_v2(path, &opened, flags, nil)
    guard result == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      throw ReplicaError(
        code: "SLUICE_REPLICA_OPEN",
        message: "The database cannot be opened: \(String(cString: sqlite3_errstr(result))).",
        sqliteCode: result)
    }
    handle = opened
    sqlite3_busy_timeout(handle, 10_000)
  }

  deinit { sqlite3_close_v2(handle) }

  /// Runs statements without results.
  func execute(_ sql: String) throws(ReplicaError) {
    let result = sqlite3_exec(handle, sql, nil, nil, nil)
    guard result == SQLITE_OK else { throw error(result) }
  }

  /// Prepares the first statement of `sql`; it is kept for as long as the caller keeps it.
  func prepare(_ sql: String) throws(ReplicaError) -> SQLiteStatement {
    var statement: OpaquePointer?
    let result = sqlite3_prepare_v3(
      handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard result == SQLITE_OK else { throw error(result) }
    guard let statement else {
      throw ReplicaError(code: "SLUICE_REPLICA_SQL", message: "There is no statement in the text.")
    }
    return SQLiteStatement(statement, of: self)
  }

  /// Runs one statement with binds and no results.
  func run(_ sql: String, _ binds: SQLiteValue...) throws(ReplicaError) {
    let statement = try prepare(sql)
    for (index, value) in binds.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
    try statement.run()
  }

  /// Runs one statement and gives the rows it answers.
  func rows(_ sql: String, _ binds: SQLiteValue...) throws(ReplicaError) -> [[SQLiteValue]] {
    let statement = try prepare(sql)
    for (index, value) in binds.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
    var rows: [[SQLiteValue]] = []
    while try statement.step() { rows.append(statement.row) }
    return rows
  }

  /// Whether a transaction is open.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs `body` in a transaction that is rolled back when it throws.
  func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    try execute("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // Some errors have rolled back already. What went wrong is the error to report.
      if isInTransaction { try? execute("ROLLBACK") }
      throw error
    }
  }

  func error(_ code: Int32) -> ReplicaError {
    if code & 0xFF == SQLITE_FULL { return .full(sqliteCode: code) }
    return ReplicaError(
      code: code & 0xFF == SQLITE_BUSY ? "SLUICE_REPLICA_BUSY" : "SLUICE_REPLICA_SQL",
      message: "SQLite: \(String(cString: sqlite3_errmsg(handle))).", sqliteCode: code)
  }
}
