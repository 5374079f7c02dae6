import SyncProtocol

/// Brings the application's tables to a published schema without losing a row that remains.
///
/// Everything happens in the caller's transaction.
struct SchemaChange {
  let store: ReplicaStore

  private var connection: SQLiteConnection { store.connection }

  /// Applies the schema, and fills tables that are new in it with the rows that were kept for want of them. Gives the writer
  /// that did it.
  @discardableResult
  func applyAndMaterialize(_ new: PublishedSchema) throws -> CheckpointWriter {
    let before = Set(try store.schema()?.tables.map(\.name) ?? [])
    try apply(new)
    let writer = try CheckpointWriter(on: connection, schema: new)
    for table in new.tables where !before.contains(table.name) {
      try writer.materialize(table: table.name)
    }
    return writer
  }

  /// Creates and alters tables. A table that has left the schema stays until `dropEmptied` finds that no bucket holds rows of
  /// it.
  func apply(_ new: PublishedSchema) throws {
    let old = try store.schema()?.tables ?? []
    for table in new.tables {
      guard !isReserved(table.name) else {
        throw ReplicaError(
          code: "SLUICE_REPLICA_SCHEMA",
          message: "The table name \(quoted(table.name)) is reserved in a replica.")
      }
      if let before = old.first(where: { sameBytes($0.name, table.name) }) {
        try alter(from: before, to: table)
      } else if try isOurs(table.name) {
        // It left the schema and came back while rows of it were held.
        try rebuild(table, keeping: try existingColumns(table.name))
      } else {
        try create(table, as: table.name)
      }
      try connection.run(
        "INSERT INTO sluice_tables (name) VALUES (?1) ON CONFLICT DO NOTHING", .text(table.name))
    }
    try store.setMeta("schema", String(decoding: new.encodedLine().dropLast(), as: UTF8.self))
  }

  /// Drops tables that are in no schema any more and of which no bucket holds a row.
  func dropEmptied(_ schema: PublishedSchema?) throws {
    for row in try connection.rows("SELECT number, name FROM sluice_tables") {
      guard let number = row[0].integer, let name = row[1].text,
        !(schema?.tables.contains { sameBytes($0.name, name) } ?? false)
      else { continue }
      let held = try connection.rows(
        "SELECT 1 FROM sluice_entries WHERE \"table\" = ?1 LIMIT 1", .integer(number))
      guard held.isEmpty else { continue }
      try connection.execute("DROP TABLE IF EXISTS \(quoted(name))")
      try connection.run("DELETE FROM sluice_tables WHERE number = ?1", .integer(number))
    }
  }

  // MARK: One table

  private func create(_ table: PublishedTable, as name: String) throws {
    try connection.execute("CREATE TABLE \(quoted(name)) (\(definition(table)))")
  }

  private func definition(_ table: PublishedTable) -> String {
    (["id TEXT PRIMARY KEY NOT NULL"] + table.replicaColumns.map { definition($0) })
      .joined(separator: ", ")
  }

  private func definition(_ column: PublishedColumn) -> String {
    switch column.type {
    case .any: quoted(column.name)
    case .text: quoted(column.name) + " TEXT"
    case .integer: quoted(column.name) + " INTEGER"
    case .real: quoted(column.name) + " REAL"
    }
  }

  private func alter(from old: PublishedTable, to new: PublishedTable) throws {
    let before = old.replicaColumns
    let after = new.replicaColumns
    if before == after { return }
    // Columns that were only added at the end need no rewriting.
    if after.count > before.count, Array(after.prefix(before.count)) == before {
      for column in after.dropFirst(before.count) {
        try connection.execute(
          "ALTER TABLE \(quoted(new.name)) ADD COLUMN \(definition(column))")
      }
      return
    }
    try rebuild(new, keeping: Set(before.map { Array($0.name.utf8) }))
  }

  /// Makes the table anew with its rows, and with those indexes and triggers of the application that still fit.
  private func rebuild(_ table: PublishedTable, keeping existing: Set<[UInt8]>) throws {
    let attached = try connection.rows(
      "SELECT sql FROM sqlite_master WHERE tbl_name = ?1 AND type IN ('index', 'trigger') AND sql IS NOT NULL",
      .text(table.name)
    ).compactMap { $0[0].text }
    let temporary = "sluice_rebuilt"
    try create(table, as: temporary)
    let kept =
      (["id"]
      + table.replicaColumns.map { $0.name }.filter { existing.contains(Array($0.utf8)) }
      .map { quoted($0) }).joined(separator: ", ")
    try connection.execute(
      "INSERT INTO \(temporary) (\(kept)) SELECT \(kept) FROM \(quoted(table.name)) ORDER BY rowid")
    try connection.execute("DROP TABLE \(quoted(table.name))")
    try connection.execute("ALTER TABLE \(temporary) RENAME TO \(quoted(table.name))")
    for sql in attached {
      try connection.execute("SAVEPOINT attached")
      do {
        try connection.execute(sql)
        try connection.execute("RELEASE attached")
      } catch {
        // It names a column that is gone; the rows matter more than it does.
        try connection.execute("ROLLBACK TO attached; RELEASE attached")
      }
    }
  }

  private func existingColumns(_ table: String) throws -> Set<[UInt8]> {
    Set(
      try connection.rows("SELECT name FROM pragma_table_info(?1)", .text(table)).compactMap {
        $0[0].text.map { Array($0.utf8) }
      })
  }

  private func isOurs(_ name: String) throws -> Bool {
    try !connection.rows(
      """
      SELECT 1 FROM sluice_tables WHERE name = ?1
      AND EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1)
      """, .text(name)
    ).isEmpty
  }

  private func isReserved(_ name: String) -> Bool {
    let lowered = name.lowercased()
    return name.isEmpty || lowered.hasPrefix("sluice_") || lowered.hasPrefix("sqlite_")
  }

  private func sameBytes(_ left: String, _ right: String) -> Bool {
    left.utf8.elementsEqual(right.utf8)
  }
}
