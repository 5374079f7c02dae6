import SyncProtocol

/// The replica's own tables: which buckets it holds, where it stands, what has been downloaded and not yet applied.
///
/// | table | one row is |
/// |---|---|
/// | `sluice_meta` | a fact about the replica: its name, its schema, its last checkpoint |
/// | `sluice_buckets` | a bucket whose rows are applied |
/// | `sluice_entries` | a row's membership in a bucket; `data` only while another membership, with a higher id, shows the row |
/// | `sluice_tables` | a table's number |
/// | `sluice_downloads` | a bucket whose rows are on their way |
/// | `sluice_pages` | a line of rows that is downloaded and not yet applied |
/// | `sluice_loads` | a bucket of which rows are written that nobody sees yet: see `FirstLoad` |
struct ReplicaStore {
  let connection: SQLiteConnection

  private static let format = "1"

  init(path: String) throws {
    connection = try SQLiteConnection(path: path)
    try connection.execute(
      """
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA journal_size_limit = 67108864;
      PRAGMA wal_autocheckpoint = 4000;
      PRAGMA cache_size = -32768;
      PRAGMA legacy_alter_table = ON;
      """)
    try connection.transaction { try createTables() }
  }

  private func createTables() throws {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS sluice_meta (
        name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS sluice_buckets (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, start INTEGER NOT NULL,
        count INTEGER NOT NULL, digest INTEGER NOT NULL, stamp TEXT, id INTEGER,
        refetch INTEGER NOT NULL DEFAULT 0);
      CREATE TABLE IF NOT EXISTS sluice_tables (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
      CREATE TABLE IF NOT EXISTS sluice_entries (
        "table" INTEGER NOT NULL, object TEXT NOT NULL, bucket INTEGER NOT NULL,
        subkey TEXT NOT NULL, id INTEGER NOT NULL, checksum INTEGER NOT NULL, data TEXT,
        PRIMARY KEY ("table", object, bucket, subkey)) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS sluice_downloads (
        bucket TEXT PRIMARY KEY NOT NULL, start INTEGER NOT NULL, replaces INTEGER NOT NULL,
        stamp TEXT, id INTEGER, operations INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS sluice_pages (
        number INTEGER PRIMARY KEY, bucket TEXT NOT NULL, line BLOB NOT NULL);
      CREATE TABLE IF NOT EXISTS sluice_loads (
        bucket TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL, count INTEGER NOT NULL,
        digest INTEGER NOT NULL) WITHOUT ROWID;
      """)
    let format = try meta("format")
    if let format, format != ReplicaStore.format {
      throw ReplicaError(
        code: "SLUICE_REPLICA_FORMAT",
        message: "The database was made by another version of Sluice (format \(format)).")
    }
    if format == nil {
      try setMeta("format", ReplicaStore.format)
      try setMeta("client_id", ReplicaStore.newClientID())
    }
  }

  private static func newClientID() -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<2).map { _ in
      let digits = String(generator.next(), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  // MARK: Facts

  func meta(_ name: String) throws -> String? {
    try connection.rows("SELECT value FROM sluice_meta WHERE name = ?1", .text(name)).first?.first?
      .text
  }

  func setMeta(_ name: String, _ value: String) throws {
    try connection.run(
      "INSERT INTO sluice_meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      .text(name), .text(value))
  }

  func renameMeta(_ name: String, to new: String) throws {
    try connection.run("UPDATE sluice_meta SET name = ?2 WHERE name = ?1", .text(name), .text(new))
  }

  /// Whether nothing was ever downloaded or shown.
  func isBlank() throws -> Bool {
    let used = try connection.rows(
      """
      SELECT EXISTS (SELECT 1 FROM sluice_buckets) OR EXISTS (SELECT 1 FROM sluice_pages)
        OR EXISTS (SELECT 1 FROM sluice_meta WHERE name IN ('schema', 'tick'))
      """)
    return used.first?.first?.integer == 0
  }

  /// The schema that the application's tables have, or another that is kept as this fact.
  func schema(_ fact: String = "schema") throws -> PublishedSchema? {
    guard let text = try meta(fact) else { return nil }
    guard case .schema(let schema) = try SyncLine(decoding: Array(text.utf8)) else { return nil }
    return schema
  }

  /// The last checkpoint that was applied whole.
  func lastCheckpoint() throws -> (tick: Int64, stamp: String, id: Int64)? {
    guard let tick = try meta("tick").flatMap({ Int64($0) }), let stamp = try meta("stamp"),
      let id = try meta("id").flatMap({ Int64($0) })
    else { return nil }
    return (tick, stamp, id)
  }

  // MARK: Buckets

  /// Where the replica stands in each bucket, for a request: in the midst of a download, or at the last checkpoint.
  func positions() throws -> [BucketName: SyncPosition] {
    var positions: [BucketName: SyncPosition] = [:]
    if let last = try lastCheckpoint() {
      for row in try connection.rows(
        "SELECT name, start, stamp, id FROM sluice_buckets WHERE NOT refetch")
      {
        guard let name = row[0].text, let start = row[1].integer else { continue }
        positions[BucketName(name)] = SyncPosition(
          stamp: row[2].text ?? last.stamp, id: row[3].integer ?? last.id, start: start)
      }
    } else {
      // Only partial checkpoints so far.
      for row in try connection.rows(
        "SELECT name, start, stamp, id FROM sluice_buckets WHERE NOT refetch AND stamp IS NOT NULL")
      {
        guard let name = row[0].text, let start = row[1].integer, let stamp = row[2].text,
          let id = row[3].integer
        else { continue }
        positions[BucketName(name)] = SyncPosition(stamp: stamp, id: id, start: start)
      }
    }
    for row in try connection.rows("SELECT bucket, start, stamp, id FROM sluice_downloads") {
      guard let name = row[0].text, let start = row[1].integer else { continue }
      guard let stamp = row[2].text, let id = row[3].integer else {
        // A new copy of which nothing has come: it may as well begin anew.
        positions[BucketName(name)] = nil
        continue
      }
      positions[BucketName(name)] = SyncPosition(stamp: stamp, id: id, start: start)
    }
    return positions
  }

  /// The names of all buckets that are applied.
  func bucketNames() throws -> Set<BucketName> {
    Set(
      try connection.rows("SELECT name FROM sluice_buckets").compactMap {
        $0[0].text.map { BucketName($0) }
      })
  }

  /// How many rows the applied buckets hold, by name.
  func bucketCounts() throws -> [BucketName: Int64] {
    var counts: [BucketName: Int64] = [:]
    for row in try connection.rows("SELECT name, count FROM sluice_buckets") {
      if let name = row[0].text { counts[BucketName(name)] = row[1].integer ?? 0 }
    }
    return counts
  }

  // MARK: Downloads

  /// Notes that a new copy of a bucket begins, which replaces the one that is held, of which nothing has come.
  func beginCopy(_ bucket: BucketName, start: Int64) throws {
    try connection.run(
      "INSERT INTO sluice_downloads (bucket, start, replaces) VALUES (?1, ?2, 1)",
      .text(bucket.text), .integer(start))
  }

  /// Notes how far a bucket's download has got.
  func noteDownload(_ header: RowsLineDecoder.Header) throws {
    try connection.run(
      """
      INSERT INTO sluice_downloads (bucket, start, replaces, stamp, id, operations)
      VALUES (?1, coalesce((SELECT start FROM sluice_buckets WHERE name = ?1), 0), 0, ?2, ?3, ?4)
      ON CONFLICT (bucket) DO UPDATE SET
        stamp = excluded.stamp, id = excluded.id, operations = operations + excluded.operations
      """, .text(header.bucket.text), .text(header.next.stamp), .integer(header.next.id),
      .integer(Int64(header.operations)))
  }

  func discardDownload(_ bucket: BucketName) throws {
    try connection.run("DELETE FROM sluice_downloads WHERE bucket = ?1", .text(bucket.text))
    try connection.run("DELETE FROM sluice_pages WHERE bucket = ?1", .text(bucket.text))
  }

  /// Operations that are downloaded and not yet applied.
  func stagedOperations() throws -> Int64 {
    try connection.rows("SELECT coalesce(sum(operations), 0) FROM sluice_downloads").first?.first?
      .integer ?? 0
  }

  /// Buckets of which a new copy is on its way.
  func replacedBuckets() throws -> Set<BucketName> {
    Set(
      try connection.rows("SELECT bucket FROM sluice_downloads WHERE replaces").compactMap {
        $0[0].text.map { BucketName($0) }
      })
  }
}
