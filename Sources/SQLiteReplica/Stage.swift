import SyncProtocol

/// Lines of rows on their way: in memory while they are few, in the database as soon as they are many.
struct Stage {
  let store: ReplicaStore
  /// More bytes than these are written to the database.
  let memoryLimit: Int

  private(set) var lines: [StagedLine] = []
  private var bytes = 0

  init(store: ReplicaStore, memoryLimit: Int) {
    self.store = store
    self.memoryLimit = memoryLimit
  }

  mutating func append(_ line: StagedLine) throws {
    lines.append(line)
    bytes += line.bytes.count
    if bytes > memoryLimit { try flush() }
  }

  /// Forgets the lines in memory of one bucket.
  mutating func discard(_ bucket: BucketName) {
    lines.removeAll { $0.bucket == bucket }
    bytes = lines.reduce(0) { $0 + $1.bytes.count }
  }

  /// The lines in memory have been applied: of every bucket, or of these.
  mutating func removeApplied(_ buckets: Set<BucketName>?) {
    guard let buckets else {
      lines = []
      bytes = 0
      return
    }
    for bucket in buckets { discard(bucket) }
  }

  /// Writes the lines in memory to the database, with the position that each bucket's download has reached.
  mutating func flush() throws {
    guard !lines.isEmpty else { return }
    let connection = store.connection
    try connection.transaction {
      let insert = try connection.prepare("INSERT INTO sluice_pages (bucket, line) VALUES (?1, ?2)")
      for line in lines {
        try insert.bind(.text(line.bucket.text), at: 1)
        line.bytes.withUnsafeBufferPointer { insert.bind(blob: $0, at: 2) }
        try insert.run()
        try connection.run(
          """
          INSERT INTO sluice_downloads (bucket, start, replaces, stamp, id, operations)
          VALUES (?1, coalesce((SELECT start FROM sluice_buckets WHERE name = ?1), 0), 0, ?2, ?3, ?4)
          ON CONFLICT (bucket) DO UPDATE SET
            stamp = excluded.stamp, id = excluded.id, operations = operations + excluded.operations
          """, .text(line.bucket.text), .text(line.next.stamp), .integer(line.next.id),
          .integer(Int64(line.operations)))
      }
    }
    lines = []
    bytes = 0
  }
}
