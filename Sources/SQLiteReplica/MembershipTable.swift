import SyncProtocol

/// Which buckets hold which rows: `sluice_entries`, through prepared statements.
final class MembershipTable {
  /// One bucket's hold on one row.
  struct Membership {
    var bucket: Int64
    var subkey: [UInt8]
    var id: Int64
    var checksum: UInt64
    var hasData: Bool
  }

  /// What is held from one id on.
  enum FirstObject {
    case same
    case later([UInt8])
    case none
  }

  private let selectStatement: SQLiteStatement
  private let firstStatement: SQLiteStatement
  private let insertStatement: SQLiteStatement
  private let putStatement: SQLiteStatement
  private let deleteStatement: SQLiteStatement
  private let setDataStatement: SQLiteStatement
  private let getDataStatement: SQLiteStatement

  init(on connection: SQLiteConnection) throws {
    selectStatement = try connection.prepare(
      """
      SELECT bucket, subkey, id, checksum, data IS NOT NULL FROM sluice_entries
      WHERE "table" = ?1 AND object = ?2
      """)
    firstStatement = try connection.prepare(
      "SELECT object FROM sluice_entries WHERE \"table\" = ?1 AND object >= ?2 ORDER BY object LIMIT 1"
    )
    insertStatement = try connection.prepare(
      "INSERT INTO sluice_entries VALUES (?1, ?2, ?3, '', ?4, ?5, NULL)")
    putStatement = try connection.prepare(
      "INSERT OR REPLACE INTO sluice_entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
    let one = "WHERE \"table\" = ?1 AND object = ?2 AND bucket = ?3 AND subkey = ?4"
    deleteStatement = try connection.prepare("DELETE FROM sluice_entries \(one)")
    setDataStatement = try connection.prepare("UPDATE sluice_entries SET data = ?5 \(one)")
    getDataStatement = try connection.prepare("SELECT data FROM sluice_entries \(one)")
  }

  /// Reads every membership of a row into `list`.
  func read(
    table: Int64, object: UnsafeBufferPointer<UInt8>, into list: inout [Membership]
  ) throws {
    list.removeAll(keepingCapacity: true)
    selectStatement.bind(table, at: 1)
    selectStatement.bind(text: object, at: 2)
    while try selectStatement.step() {
      list.append(
        Membership(
          bucket: selectStatement.int64(0), subkey: Array(selectStatement.bytes(1)),
          id: selectStatement.int64(2), checksum: UInt64(bitPattern: selectStatement.int64(3)),
          hasData: selectStatement.int64(4) != 0))
    }
  }

  /// The first row that is held, from this id on.
  func firstObject(
    table: Int64, from object: UnsafeBufferPointer<UInt8>
  ) throws -> FirstObject {
    firstStatement.bind(table, at: 1)
    firstStatement.bind(text: object, at: 2)
    guard try firstStatement.step() else { return .none }
    defer { firstStatement.reset() }
    let first = Array(firstStatement.bytes(0))
    return equal(object, first) ? .same : .later(first)
  }

  /// Adds the first membership of a row.
  @inline(__always)
  func insert(
    table: Int64, object: UnsafeBufferPointer<UInt8>, bucket: Int64, id: Int64, checksum: UInt64
  ) throws {
    insertStatement.bind(table, at: 1)
    insertStatement.bind(text: object, at: 2)
    insertStatement.bind(bucket, at: 3)
    insertStatement.bind(id, at: 4)
    insertStatement.bind(Int64(bitPattern: checksum), at: 5)
    try insertStatement.run()
  }

  @inline(__always)
  func put(
    table: Int64, object: UnsafeBufferPointer<UInt8>, bucket: Int64,
    subkey: UnsafeBufferPointer<UInt8>, id: Int64, checksum: UInt64,
    data: UnsafeBufferPointer<UInt8>?
  ) throws {
    putStatement.bind(table, at: 1)
    putStatement.bind(text: object, at: 2)
    putStatement.bind(bucket, at: 3)
    putStatement.bind(text: subkey, at: 4)
    putStatement.bind(id, at: 5)
    putStatement.bind(Int64(bitPattern: checksum), at: 6)
    if let data { putStatement.bind(text: data, at: 7) } else { putStatement.bindNull(at: 7) }
    try putStatement.run()
  }

  func delete(
    table: Int64, object: UnsafeBufferPointer<UInt8>, _ membership: Membership
  ) throws {
    try membership.subkey.withUnsafeBufferPointer { subkey in
      bindOne(deleteStatement, table, object, membership.bucket, subkey)
      try deleteStatement.run()
    }
  }

  /// Keeps the row's data with this membership, or stops keeping it.
  func setData(
    table: Int64, object: UnsafeBufferPointer<UInt8>, _ membership: Membership, _ data: [UInt8]?
  ) throws {
    try membership.subkey.withUnsafeBufferPointer { subkey in
      bindOne(setDataStatement, table, object, membership.bucket, subkey)
      setDataStatement.bindNull(at: 5)
      data?.withUnsafeBufferPointer { setDataStatement.bind(copyOf: $0, at: 5) }
      try setDataStatement.run()
    }
  }

  /// The data kept with this membership.
  func data(
    table: Int64, object: UnsafeBufferPointer<UInt8>, _ membership: Membership
  ) throws -> [UInt8]? {
    try membership.subkey.withUnsafeBufferPointer { subkey in
      bindOne(getDataStatement, table, object, membership.bucket, subkey)
      guard try getDataStatement.step() else { return nil }
      defer { getDataStatement.reset() }
      return getDataStatement.isNull(0) ? nil : Array(getDataStatement.bytes(0))
    }
  }

  private func bindOne(
    _ statement: SQLiteStatement, _ table: Int64, _ object: UnsafeBufferPointer<UInt8>,
    _ bucket: Int64, _ subkey: UnsafeBufferPointer<UInt8>
  ) {
    statement.bind(table, at: 1)
    statement.bind(text: object, at: 2)
    statement.bind(bucket, at: 3)
    statement.bind(text: subkey, at: 4)
  }
}
