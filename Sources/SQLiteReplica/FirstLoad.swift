import SyncProtocol

/// Rows of a replica's first download, written as they come to tables that nobody sees yet.
///
/// A replica that shows nothing needs no copy of a checkpoint's lines to apply later: each row is written once, into tables
/// under names of our own, with the position that its bucket has reached. The first `complete` gives the tables their names
/// in the transaction that makes the checkpoint visible.
///
/// It reflects what is committed: after a transaction that was rolled back, it has to be opened anew.
final class FirstLoad {
  /// Where the schema of the hidden tables is kept until it is the replica's.
  private static let schemaKey = "loading_schema"

  private let store: ReplicaStore
  private let writer: CheckpointWriter
  private var tallies: [BucketName: CheckpointWriter.Tally] = [:]

  /// Whether one is under way.
  static func isUnderWay(in store: ReplicaStore) throws -> Bool {
    try store.meta(schemaKey) != nil
  }

  /// The one that is under way; nil when there is none, and none can begin. Inside a transaction.
  static func open(in store: ReplicaStore, schema: PublishedSchema?) throws -> FirstLoad? {
    if try !isUnderWay(in: store) {
      guard let schema, try store.isBlank() else { return nil }
      try SchemaChange(store: store).apply(schema)
      try hideTables(store)
    } else if let schema, schema != (try store.schema(schemaKey)) {
      try change(to: schema, store)
    }
    return try FirstLoad(store)
  }

  private init(_ store: ReplicaStore) throws {
    self.store = store
    writer = try CheckpointWriter(
      on: store.connection, schema: try store.schema(Self.schemaKey), isHidden: true)
    for row in try store.connection.rows("SELECT bucket, number, count, digest FROM sluice_loads") {
      guard let name = row[0].text, let number = row[1].integer, let count = row[2].integer,
        let digest = row[3].integer
      else { continue }
      tallies[BucketName(name)] = CheckpointWriter.Tally(
        bucket: number, count: count, digest: UInt64(bitPattern: digest))
    }
  }

  // MARK: Rows

  /// Writes the rows of one line. Inside a transaction.
  func apply(line: [UInt8], of bucket: BucketName) throws -> RowsLineDecoder.Header {
    let tally = tally(of: bucket)
    let header = try line.withUnsafeBufferPointer { try writer.apply(line: $0, to: tally) }
    guard header.bucket == bucket else { throw ReplicaError.order("A line names two buckets.") }
    return header
  }

  /// Notes how much of a bucket is written, in the transaction that writes it.
  func note(_ bucket: BucketName) throws {
    guard let tally = tallies[bucket] else { return }
    try store.connection.run(
      """
      INSERT INTO sluice_loads VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (bucket) DO UPDATE SET count = excluded.count, digest = excluded.digest
      """, .text(bucket.text), .integer(tally.bucket), .integer(tally.count),
      .integer(Int64(bitPattern: tally.digest)))
  }

  /// Takes back what is written of a bucket. Inside a transaction.
  func discard(_ bucket: BucketName) throws {
    guard let tally = tallies[bucket] else { return }
    try writer.removeAll(of: [tally])
    try note(bucket)
  }

  private func tally(of bucket: BucketName) -> CheckpointWriter.Tally {
    if let tally = tallies[bucket] { return tally }
    let last = tallies.values.map(\.bucket).max() ?? 0
    let tally = CheckpointWriter.Tally(bucket: last + 1, count: 0, digest: 0)
    tallies[bucket] = tally
    return tally
  }

  // MARK: The end of it

  /// The buckets of which rows are written.
  static func buckets(in store: ReplicaStore) throws -> Set<BucketName> {
    Set(
      try store.connection.rows("SELECT bucket FROM sluice_loads WHERE count > 0").compactMap {
        $0[0].text.map { BucketName($0) }
      })
  }

  /// Makes the rows the replica's own, in the transaction of the checkpoint that shows them, and tells how many each table
  /// has.
  static func publish(_ store: ReplicaStore) throws -> [String: Int64] {
    try showTables(store)
    try store.connection.execute(
      """
      INSERT INTO sluice_buckets (number, name, start, count, digest)
        SELECT l.number, l.bucket, coalesce(d.start, 0), l.count, l.digest
        FROM sluice_loads AS l LEFT JOIN sluice_downloads AS d ON d.bucket = l.bucket;
      DELETE FROM sluice_loads;
      UPDATE sluice_downloads SET replaces = 0;
      """)
    var rows: [String: Int64] = [:]
    for table in try store.schema()?.tables ?? [] {
      let count = try store.connection.rows("SELECT count(*) FROM \(quoted(table.name))")
      rows[table.name] = count.first?.first?.integer ?? 0
    }
    return rows.filter { $0.value > 0 }
  }

  // MARK: Tables

  /// The name of a table while it is hidden.
  static func hiddenName(_ table: Int64) -> String { "sluice_loading_\(table)" }

  /// The rules changed between two connections: the hidden tables follow.
  private static func change(to schema: PublishedSchema, _ store: ReplicaStore) throws {
    let shown = try showTables(store)
    try SchemaChange(store: store).applyAndMaterialize(schema)
    try hideTables(store, and: shown)
  }

  /// Hides the schema's tables, and others that have left it while rows of them were held.
  private static func hideTables(_ store: ReplicaStore, and others: Set<String> = []) throws {
    let names = others.union(try store.schema()?.tables.map(\.name) ?? [])
    for row in try store.connection.rows("SELECT number, name FROM sluice_tables") {
      guard let number = row[0].integer, let name = row[1].text, names.contains(name) else {
        continue
      }
      try store.connection.execute("ALTER TABLE \(quoted(name)) RENAME TO \(hiddenName(number))")
    }
    try store.renameMeta("schema", to: schemaKey)
  }

  /// Gives the hidden tables their names, and tells which.
  @discardableResult
  private static func showTables(_ store: ReplicaStore) throws -> Set<String> {
    try store.renameMeta(schemaKey, to: "schema")
    let hidden = try store.connection.rows(
      """
      SELECT t.name, m.name FROM sluice_tables AS t
      JOIN sqlite_master AS m ON m.type = 'table' AND m.name = 'sluice_loading_' || t.number
      """)
    var shown: Set<String> = []
    for row in hidden {
      guard let name = row[0].text, let hiddenName = row[1].text else { continue }
      try store.connection.execute("ALTER TABLE \(hiddenName) RENAME TO \(quoted(name))")
      shown.insert(name)
    }
    return shown
  }
}
