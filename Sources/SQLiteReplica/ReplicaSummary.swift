/// What a replica's database holds.
public struct ReplicaSummary: Sendable, Equatable {
  /// A bucket or a table with its number of rows.
  public struct Item: Sendable, Equatable {
    public let name: String
    public let rows: Int64
  }

  public let checkpoint: CheckpointTime?
  public let buckets: [Item]
  public let tables: [Item]
  /// Operations that are downloaded and not visible yet.
  public let stagedOperations: Int64
}

extension ReplicaReader {
  /// What the database holds, at one moment. Empty if no replica was ever made in it.
  public func summary() throws -> ReplicaSummary {
    try snapshot { reader in
      let isReplica = try reader.query("SELECT 1 FROM sqlite_master WHERE name = 'sluice_meta'")
      guard !isReplica.rows.isEmpty else {
        throw ReplicaError(
          code: "SLUICE_REPLICA_OPEN", message: "The database is not a replica.")
      }
      var facts: [String: String] = [:]
      for row in try reader.query("SELECT name, value FROM sluice_meta").rows {
        if let name = row[0].text { facts[name] = row[1].text }
      }
      var checkpoint: CheckpointTime?
      if let tick = facts["tick"].flatMap({ Int64($0) }), let stamp = facts["stamp"] {
        checkpoint = CheckpointTime(
          tick: tick, stamp: stamp, appliedAt: facts["applied_at"] ?? stamp)
      }
      let names = try reader.query(
        """
        SELECT name FROM sqlite_master WHERE type = 'table'
        AND name IN (SELECT name FROM sluice_tables) ORDER BY name
        """)
      var tables: [ReplicaSummary.Item] = []
      for row in names.rows {
        let name = row[0].text ?? ""
        let count = try reader.query("SELECT count(*) FROM \(quoted(name))").rows.first?.first
        tables.append(ReplicaSummary.Item(name: name, rows: count?.integer ?? 0))
      }
      let buckets = try reader.query("SELECT name, count FROM sluice_buckets ORDER BY name").rows
      let staged = try reader.query("SELECT coalesce(sum(operations), 0) FROM sluice_downloads")
      return ReplicaSummary(
        checkpoint: checkpoint,
        buckets: buckets.map {
          ReplicaSummary.Item(name: $0[0].text ?? "", rows: $0[1].integer ?? 0)
        },
        tables: tables, stagedOperations: staged.rows.first?.first?.integer ?? 0)
    }
  }
}
