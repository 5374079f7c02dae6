import SyncProtocol

/// Applies operations to the application's tables and to the memberships, inside one transaction.
///
/// A row shows the data of its membership with the highest entry id, whichever bucket that is in. The data of the others is
/// kept beside their membership, so that the row can fall back on it.
final class CheckpointWriter {
  /// One bucket's totals while it is being written.
  final class Tally {
    let bucket: Int64
    var count: Int64
    var digest: UInt64

    init(bucket: Int64, count: Int64, digest: UInt64) {
      self.bucket = bucket
      self.count = count
      self.digest = digest
    }
  }

  /// One table while it is being written.
  private final class Target {
    let number: Int64
    let name: [UInt8]
    /// nil = the schema does not have the table; its rows' data is kept with the memberships.
    let writer: TableWriter?
    /// Whether the row before was a new one, so that the next may be new as well.
    var expectsNewRows = true
    /// Of the ids between these two, no row is held: new rows that come in the order of their ids fall into one such gap after
    /// another.
    private var gap: (start: [UInt8], end: [UInt8]?)?

    init(number: Int64, name: [UInt8], writer: TableWriter?) {
      self.number = number
      self.name = name
      self.writer = writer
    }

    /// Whether the id is known to be free.
    @inline(__always)
    func isInGap(_ object: UnsafeBufferPointer<UInt8>) -> Bool {
      guard let gap, isAfter(object, gap.start) else { return false }
      return gap.end.map { isBefore(object, $0) } ?? true
    }

    /// The id is free, and so are all up to `end`.
    func openGap(at object: UnsafeBufferPointer<UInt8>, end: [UInt8]?) {
      gap = (Array(object), end)
    }

    /// The id was in the gap and is free no more.
    @inline(__always)
    func narrowGap(to object: UnsafeBufferPointer<UInt8>) {
      gap?.start.removeAll(keepingCapacity: true)
      gap?.start.append(contentsOf: object)
    }
  }

  private let connection: SQLiteConnection
  private let memberships: MembershipTable
  private let schema: PublishedSchema?
  private let isHidden: Bool
  private var targets: [[UInt8]: Target] = [:]
  private var recent: Target?
  private var objectScratch: [UInt8] = []
  private var held: [MembershipTable.Membership] = []

  /// Rows of the application's tables that were written or deleted.
  private(set) var rowsChanged: Int64 = 0
  /// Whether some row now shows an older version than it did before.
  private(set) var showsOlderVersion = false
  /// The tables that changed.
  var tablesChanged: Set<String> {
    Set(changed.map { String(decoding: $0, as: UTF8.self) })
  }
  private var changed: Set<[UInt8]> = []
  private var lastChanged: Target?

  /// With `isHidden`, the tables of the schema are those that `FirstLoad` has hidden.
  init(on connection: SQLiteConnection, schema: PublishedSchema?, isHidden: Bool = false) throws {
    self.connection = connection
    self.schema = schema
    self.isHidden = isHidden
    memberships = try MembershipTable(on: connection)
  }

  // MARK: Operations

  /// Applies every operation of one line of rows.
  func apply(
    line: UnsafeBufferPointer<UInt8>, to tally: Tally
  ) throws -> RowsLineDecoder.Header {
    try RowsLineDecoder.decode(line) { operation in
      let target = try self.target(operation.table)
      if operation.objectID.hasEscapes {
        objectScratch.removeAll(keepingCapacity: true)
        operation.objectID.appendResolved(to: &objectScratch)
        let object = objectScratch
        try object.withUnsafeBufferPointer { try apply(operation, to: target, $0, tally) }
      } else {
        try apply(operation, to: target, operation.objectID.raw, tally)
      }
    }
  }

  @inline(__always)
  private func apply(
    _ operation: RowsLineDecoder.Operation, to target: Target,
    _ object: UnsafeBufferPointer<UInt8>, _ tally: Tally
  ) throws {
    guard let data = operation.data else {
      let subkey = operation.subkey.map { Array($0.string.utf8) } ?? []
      try memberships.read(table: target.number, object: object, into: &held)
      guard
        let own = held.firstIndex(where: { $0.bucket == tally.bucket && $0.subkey == subkey }),
        held[own].id < operation.id
      else { return }
      try remove(own, of: object, in: target, tally)
      return
    }
    if operation.subkey == nil, let writer = target.writer, try isNew(object, in: target) {
      try memberships.insert(
        table: target.number, object: object, bucket: tally.bucket, id: operation.id,
        checksum: operation.checksum)
      try writer.upsert(object, data)
      tally.count += 1
      tally.digest ^= operation.checksum
      target.narrowGap(to: object)
      noteChange(target)
      return
    }
    try put(operation, data, object, in: target, tally)
  }

  /// Whether the row, which is to be written, is held by no bucket; false as well when it is likely to be held.
  @inline(__always)
  private func isNew(
    _ object: UnsafeBufferPointer<UInt8>, in target: Target
  ) throws -> Bool {
    if target.isInGap(object) { return true }
    guard target.expectsNewRows else { return false }
    switch try memberships.firstObject(table: target.number, from: object) {
    case .same:
      target.expectsNewRows = false
      return false
    case .later(let end):
      target.openGap(at: object, end: end)
    case .none:
      target.openGap(at: object, end: nil)
    }
    return true
  }

  private func put(
    _ operation: RowsLineDecoder.Operation, _ data: UnsafeBufferPointer<UInt8>,
    _ object: UnsafeBufferPointer<UInt8>, in target: Target, _ tally: Tally
  ) throws {
    let subkey = operation.subkey.map { Array($0.string.utf8) } ?? []
    try memberships.read(table: target.number, object: object, into: &held)
    target.expectsNewRows = held.isEmpty
    let own = held.firstIndex { $0.bucket == tally.bucket && $0.subkey == subkey }
    if let own {
      // Sent twice: the later entry is what counts.
      guard held[own].id < operation.id else { return }
      tally.digest ^= held[own].checksum
      tally.count -= 1
    }
    let shown = held.max { $0.id < $1.id }
    let wins = shown.map { $0.id < operation.id } ?? true
    if wins, let shown, let writer = target.writer,
      !(shown.bucket == tally.bucket && shown.subkey == subkey)
    {
      // What the row shows now becomes another membership's kept data.
      try memberships.setData(
        table: target.number, object: object, shown, try writer.serialized(object))
    }
    try subkey.withUnsafeBufferPointer {
      try memberships.put(
        table: target.number, object: object, bucket: tally.bucket, subkey: $0, id: operation.id,
        checksum: operation.checksum, data: wins && target.writer != nil ? nil : data)
    }
    tally.digest ^= operation.checksum
    tally.count += 1
    if target.isInGap(object) { target.narrowGap(to: object) }
    if wins {
      try target.writer?.upsert(object, data)
      noteChange(target)
    }
  }

  /// Removes `held[own]`; the row falls back on its other memberships, or goes.
  private func remove(
    _ own: Int, of object: UnsafeBufferPointer<UInt8>, in target: Target, _ tally: Tally
  ) throws {
    let leaving = held[own]
    try memberships.delete(table: target.number, object: object, leaving)
    tally.digest ^= leaving.checksum
    tally.count -= 1
    held.remove(at: own)
    guard let next = held.max(by: { $0.id < $1.id }) else {
      try target.writer?.delete(object)
      noteChange(target)
      return
    }
    guard next.id < leaving.id else { return }
    showsOlderVersion = true
    guard let writer = target.writer else { return }
    guard let data = try memberships.data(table: target.number, object: object, next) else {
      throw ReplicaError(
        code: "SLUICE_REPLICA_DAMAGED",
        message: "A row's data is missing; delete the database file and sync again.")
    }
    try data.withUnsafeBufferPointer { try writer.upsert(object, $0) }
    try memberships.setData(table: target.number, object: object, next, nil)
    noteChange(target)
  }

  // MARK: Buckets

  /// Removes everything that these buckets hold.
  func removeAll(of tallies: [Tally]) throws {
    let byBucket = Dictionary(uniqueKeysWithValues: tallies.map { ($0.bucket, $0) })
    guard !byBucket.isEmpty else { return }
    try connection.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS sluice_leaving_buckets (number INTEGER PRIMARY KEY);
      CREATE TEMP TABLE IF NOT EXISTS sluice_leaving ("table", object, bucket, subkey);
      """)
    for bucket in byBucket.keys {
      try connection.run("INSERT INTO temp.sluice_leaving_buckets VALUES (?1)", .integer(bucket))
    }
    try connection.execute(
      """
      INSERT INTO temp.sluice_leaving SELECT "table", object, bucket, subkey FROM sluice_entries
      WHERE bucket IN (SELECT number FROM temp.sluice_leaving_buckets)
      """)
    let names = try tableNames()
    let statement = try connection.prepare("SELECT * FROM temp.sluice_leaving")
    while try statement.step() {
      let object = statement.bytes(1)
      guard let name = names[statement.int64(0)], let tally = byBucket[statement.int64(2)] else {
        continue
      }
      let subkey = Array(statement.bytes(3))
      let target = try self.target(named: name)
      try memberships.read(table: target.number, object: object, into: &held)
      if let own = held.firstIndex(where: { $0.bucket == tally.bucket && $0.subkey == subkey }) {
        try remove(own, of: object, in: target, tally)
      }
    }
    try connection.execute(
      "DELETE FROM temp.sluice_leaving; DELETE FROM temp.sluice_leaving_buckets")
    for tally in tallies {
      tally.count = 0
      tally.digest = 0
    }
  }

  /// Writes the rows of a table that has just come into the schema from the data kept with their memberships.
  func materialize(table name: String) throws {
    let target = try self.target(named: Array(name.utf8))
    guard let writer = target.writer else { return }
    let statement = try connection.prepare(
      """
      SELECT object, data, bucket, subkey FROM sluice_entries AS e WHERE "table" = ?1 AND data IS NOT NULL
      AND id = (SELECT max(id) FROM sluice_entries AS o WHERE o."table" = e."table" AND o.object = e.object)
      """)
    statement.bind(target.number, at: 1)
    while try statement.step() {
      try writer.upsert(statement.bytes(0), statement.bytes(1))
      noteChange(target)
    }
    try connection.run(
      """
      UPDATE sluice_entries AS e SET data = NULL WHERE "table" = ?1 AND data IS NOT NULL
      AND id = (SELECT max(id) FROM sluice_entries AS o WHERE o."table" = e."table" AND o.object = e.object)
      """, .integer(target.number))
  }

  // MARK: Tables

  @inline(__always)
  private func target(_ name: JSONTextView) throws -> Target {
    if let recent, !name.hasEscapes, equal(name.raw, recent.name) { return recent }
    return try target(named: Array(name.string.utf8))
  }

  private func target(named name: [UInt8]) throws -> Target {
    if let target = targets[name] {
      recent = target
      return target
    }
    let text = String(decoding: name, as: UTF8.self)
    try connection.run(
      "INSERT INTO sluice_tables (name) VALUES (?1) ON CONFLICT DO NOTHING", .text(text))
    let number =
      try connection.rows("SELECT number FROM sluice_tables WHERE name = ?1", .text(text)).first?
      .first?.integer ?? 0
    let storedName = isHidden ? FirstLoad.hiddenName(number) : text
    let published =
      try schema?.tables.first { $0.name.utf8.elementsEqual(name) }
      ?? tableLeavingSchema(storedName)
    let target = Target(
      number: number, name: name,
      writer: try published.map { try TableWriter($0, named: storedName, on: connection) })
    targets[name] = target
    recent = target
    return target
  }

  /// A table that is in the schema no more but still has rows.
  private func tableLeavingSchema(_ name: String) throws -> PublishedTable? {
    let columns = try connection.rows("SELECT name FROM pragma_table_info(?1)", .text(name))
      .compactMap { $0[0].text }
    guard columns.contains("id") else { return nil }
    return PublishedTable(
      name: name, columns: columns.map { PublishedColumn(name: $0, type: .any) })
  }

  private func tableNames() throws -> [Int64: [UInt8]] {
    var names: [Int64: [UInt8]] = [:]
    for row in try connection.rows("SELECT number, name FROM sluice_tables") {
      if let number = row[0].integer, let name = row[1].text { names[number] = Array(name.utf8) }
    }
    return names
  }

  @inline(__always)
  private func noteChange(_ target: Target) {
    rowsChanged += 1
    guard target !== lastChanged else { return }
    lastChanged = target
    changed.insert(target.name)
  }
}
