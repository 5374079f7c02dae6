import SyncProtocol

/// Makes a completed checkpoint visible, whole, in one transaction.
struct CheckpointApplication {
  /// What came of it.
  enum Outcome {
    case applied(rowsChanged: Int64, tables: Set<String>)
    /// A partial checkpoint that would show an older version of a row: left for the whole one.
    case postponed
    /// These buckets do not hold what was announced; nothing was applied.
    case drifted([BucketName])
  }

  private struct Refused: Error {
    let outcome: Outcome
  }

  let store: ReplicaStore
  let completion: DownloadState.Completion
  let newSchema: PublishedSchema?
  /// Lines of rows that are not in the stage, which come after those that are.
  let unstaged: [StagedLine]
  let appliedAt: String
  /// Called between the steps; a test ends the process in it.
  let onStep: (() throws -> Void)?

  private var connection: SQLiteConnection { store.connection }

  func run() throws -> Outcome {
    do {
      return try connection.transaction { try apply() }
    } catch let refused as Refused {
      return refused.outcome
    }
  }

  private func apply() throws -> Outcome {
    let isWhole = completion.priority == nil
    let loaded = try publishFirstLoad()
    let schema = try newSchema ?? store.schema()
    let writer =
      try newSchema.map { try SchemaChange(store: store).applyAndMaterialize($0) }
      ?? CheckpointWriter(on: connection, schema: schema)
    try onStep?()

    var tallies = try loadTallies()
    try removeLeavingBuckets(writer, &tallies)
    try onStep?()
    try applyLines(writer, tallies)
    if !isWhole, writer.showsOlderVersion { throw Refused(outcome: .postponed) }

    let drifted = completion.buckets.filter { bucket in
      guard let tally = tallies[bucket.name] else { return true }
      return tally.count != bucket.count || tally.digest != bucket.digest
    }
    guard drifted.isEmpty else { throw Refused(outcome: .drifted(drifted.map(\.name))) }

    try storeTallies(tallies)
    if isWhole {
      if newSchema != nil || completion.keeping != nil {
        try SchemaChange(store: store).dropEmptied(schema)
      }
      try store.setMeta("tick", String(completion.tick))
      try store.setMeta("stamp", completion.stamp)
      try store.setMeta("id", String(completion.id))
      try store.setMeta("applied_at", appliedAt)
    }
    try onStep?()
    return .applied(
      rowsChanged: loaded.values.reduce(writer.rowsChanged, +),
      tables: writer.tablesChanged.union(loaded.keys))
  }

  /// Takes in what was written aside of the first download. A partial checkpoint that would show more than its own waits.
  private func publishFirstLoad() throws -> [String: Int64] {
    guard try FirstLoad.isUnderWay(in: store) else { return [:] }
    if completion.priority != nil {
      let completing = Set(completion.buckets.map(\.name))
      guard try FirstLoad.buckets(in: store).isSubset(of: completing) else {
        throw Refused(outcome: .postponed)
      }
    }
    return try FirstLoad.publish(store)
  }

  // MARK: Buckets

  private func loadTallies() throws -> [BucketName: CheckpointWriter.Tally] {
    var tallies: [BucketName: CheckpointWriter.Tally] = [:]
    for row in try connection.rows("SELECT name, number, count, digest FROM sluice_buckets") {
      guard let name = row[0].text, let number = row[1].integer, let count = row[2].integer,
        let digest = row[3].integer
      else { continue }
      tallies[BucketName(name)] = CheckpointWriter.Tally(
        bucket: number, count: count, digest: UInt64(bitPattern: digest))
    }
    for bucket in completion.buckets where tallies[bucket.name] == nil {
      try connection.run(
        "INSERT INTO sluice_buckets (name, start, count, digest) VALUES (?1, ?2, 0, 0)",
        .text(bucket.name.text), .integer(bucket.start))
      let number = try connection.rows("SELECT last_insert_rowid()").first?.first?.integer ?? 0
      tallies[bucket.name] = CheckpointWriter.Tally(bucket: number, count: 0, digest: 0)
    }
    return tallies
  }

  /// Empties the buckets of which a new copy has come, and removes those that are no longer granted.
  private func removeLeavingBuckets(
    _ writer: CheckpointWriter, _ tallies: inout [BucketName: CheckpointWriter.Tally]
  ) throws {
    let completing = Set(completion.buckets.map(\.name))
    let replaced = try store.replacedBuckets().intersection(completing)
    let gone = completion.keeping.map { Set(tallies.keys).subtracting($0) } ?? []
    try writer.removeAll(
      of: replaced.union(gone).compactMap { tallies[$0] }.filter { $0.count > 0 })
    for name in gone {
      try connection.run("DELETE FROM sluice_buckets WHERE name = ?1", .text(name.text))
      tallies[name] = nil
    }
  }

  private func storeTallies(_ tallies: [BucketName: CheckpointWriter.Tally]) throws {
    let isWhole = completion.priority == nil
    for bucket in completion.buckets {
      guard let tally = tallies[bucket.name] else { continue }
      try connection.run(
        """
        UPDATE sluice_buckets SET start = ?2, count = ?3, digest = ?4, refetch = 0, stamp = ?5, id = ?6
        WHERE number = ?1
        """, .integer(tally.bucket), .integer(bucket.start), .integer(tally.count),
        .integer(Int64(bitPattern: tally.digest)), isWhole ? .null : .text(completion.stamp),
        isWhole ? .null : .integer(completion.id))
    }
    // After a whole checkpoint every bucket stands where the replica stands.
    if isWhole {
      try connection.run("UPDATE sluice_buckets SET stamp = NULL, id = NULL WHERE id IS NOT NULL")
    }
  }

  // MARK: Lines

  private func applyLines(
    _ writer: CheckpointWriter, _ tallies: [BucketName: CheckpointWriter.Tally]
  ) throws {
    let wanted: Set<BucketName>? =
      completion.priority == nil ? nil : Set(completion.buckets.map(\.name))
    let pages = try connection.rows("SELECT number, bucket FROM sluice_pages ORDER BY number")
    let read = try connection.prepare("SELECT line FROM sluice_pages WHERE number = ?1")
    let delete = try connection.prepare("DELETE FROM sluice_pages WHERE number = ?1")
    for page in pages {
      guard let number = page[0].integer, let bucket = page[1].text.map({ BucketName($0) }),
        wanted?.contains(bucket) ?? true
      else { continue }
      if let tally = tallies[bucket] {
        read.bind(number, at: 1)
        if try read.step() {
          defer { read.reset() }
          _ = try writer.apply(line: read.bytes(0), to: tally)
        }
      }
      // At once, so that the rows written next take its place in the file.
      delete.bind(number, at: 1)
      try delete.run()
      try onStep?()
    }
    for line in unstaged where wanted?.contains(line.bucket) ?? true {
      guard let tally = tallies[line.bucket] else { continue }
      _ = try line.bytes.withUnsafeBufferPointer { try writer.apply(line: $0, to: tally) }
    }
    if let wanted {
      for name in wanted {
        try connection.run("DELETE FROM sluice_downloads WHERE bucket = ?1", .text(name.text))
      }
    } else {
      try connection.run("DELETE FROM sluice_downloads")
    }
  }
}

/// A line of rows that has come.
struct StagedLine {
  let bytes: [UInt8]
  let header: RowsLineDecoder.Header

  var bucket: BucketName { header.bucket }
}
