package import Postgres

/// How the storage is doing.
package struct StatusReport: Sendable, Equatable, Codable {
  package struct Definition: Sendable, Equatable, Codable {
    package let name: String
    /// The stream that it is a part of; nil for a bucket definition, and for what no rules name any more.
    package let stream: String?
    /// `building`, `active` or `retired`.
    package let state: String
    package let buckets: Int64
    package let rows: Int64
    package let rowsRead: Int64
    /// Why it stands still, and what to do; nil when it does not.
    package let suspended: String?
  }

  package struct Source: Sendable, Equatable, Codable {
    package let schema: String
    package let name: String
    /// Relations of it, partitions included, that lack capture triggers.
    package let uncaptured: Int64
  }

  package let tick: Int64
  package let stamp: String
  package let boundaryID: Int64
  package let secondsSinceTick: Double
  package let generation: Int64
  package let buildingGeneration: Int64?
  /// The server process of the leader's connection.
  package let leader: Int64?
  package let inboxBytes: Int64
  /// Whether changes are waiting for a tick.
  package let hasPendingChanges: Bool
  /// The age of the oldest open transaction that holds an id, in seconds.
  package let oldestTransaction: Double?
  package let definitions: [Definition]
  package let sources: [Source]
}

/// Reads the status; what cannot be read with the role's rights is an error.
package struct StatusReader: Sendable {
  package init() {}

  package func read(_ connection: PostgresConnection) async throws -> StatusReport {
    let exists = try await connection.query("SELECT to_regclass('sluice.ticks') IS NOT NULL")
    guard exists.firstBool(0) == true else {
      throw StorageError(
        .notInstalled, "the database has no schema of Sluice's", hint: "Run `sluice install`.")
    }
    let results = try await connection.pipeline([
      (Self.head, [.integer(Sequencer.lockKey)]), (Self.definitions, []), (Self.sources, []),
    ])
    let head = results[0]
    guard let tick = head.firstInt(0), let stamp = head.firstString(1) else {
      throw StorageError(
        .notInstalled, "the database has no first tick", hint: "Run `sluice install`.")
    }
    let (definitions, sources) = (results[1], results[2])
    return StatusReport(
      tick: tick, stamp: stamp, boundaryID: head.firstInt(2) ?? 0,
      secondsSinceTick: head.firstString(3).flatMap(Double.init) ?? 0,
      generation: head.firstInt(4) ?? 0, buildingGeneration: head.firstInt(5),
      leader: head.firstInt(6), inboxBytes: head.firstInt(7) ?? 0,
      hasPendingChanges: head.firstBool(8) ?? false,
      oldestTransaction: head.firstString(9).flatMap(Double.init),
      definitions: (0..<definitions.rowCount).map { row in
        StatusReport.Definition(
          name: definitions.string(row, 0) ?? "", stream: definitions.string(row, 5),
          state: definitions.string(row, 1) ?? "",
          buckets: definitions.int(row, 2) ?? 0, rows: definitions.int(row, 3) ?? 0,
          rowsRead: definitions.int(row, 4) ?? 0, suspended: definitions.string(row, 6))
      },
      sources: (0..<sources.rowCount).map { row in
        StatusReport.Source(
          schema: sources.string(row, 0) ?? "", name: sources.string(row, 1) ?? "",
          uncaptured: sources.int(row, 2) ?? 0)
      })
  }

  private static let head = """
    SELECT t.number, t.stamp, t.boundary_id,
      extract(epoch FROM clock_timestamp() - t.stamp::timestamptz)::float8, t.generation,
      (SELECT g.id FROM sluice.generations g WHERE g.state = 'building'),
      (SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted
        AND l.database = sluice.database_oid() AND l.objsubid = 1
        AND (l.classid::bigint << 32) | l.objid::bigint = $1::bigint LIMIT 1),
      (SELECT sum(pg_total_relation_size(i.inhrelid))::bigint
        FROM pg_inherits i WHERE i.inhparent = 'sluice.inbox'::regclass),
      EXISTS (SELECT FROM sluice.inbox i WHERE i.xid >= pg_snapshot_xmax(t.snapshot)
        OR i.xid = ANY (ARRAY(SELECT pg_snapshot_xip(t.snapshot)))),
      (SELECT max(extract(epoch FROM clock_timestamp() - a.xact_start))::float8
        FROM pg_stat_activity a WHERE a.backend_xid IS NOT NULL AND a.pid <> pg_backend_pid())
    FROM sluice.ticks t ORDER BY t.number DESC LIMIT 1
    """

  private static let definitions = """
    SELECT d.name, d.state, count(h.bucket), coalesce(sum(h.row_count), 0)::bigint,
      coalesce((SELECT sum(q.rows_read) FROM sluice.queries q WHERE q.definition = d.id), 0)::bigint,
      (SELECT min(r.definition -> 'stream' ->> 'name')
        FROM sluice.generations g, json_array_elements(g.rules::json -> 'definitions') r(definition)
        WHERE g.state <> 'retired' AND r.definition ->> 'name' = d.name
          AND r.definition ->> 'contentHash' = d.content_hash),
      (SELECT string_agg(s.problem || ' ' || s.remedy, ' ' ORDER BY s.source)
        FROM sluice.suspensions s WHERE s.definition = d.id AND d.state <> 'retired')
    FROM sluice.definitions d LEFT JOIN sluice.buckets b ON b.definition = d.id
    LEFT JOIN sluice.bucket_heads h ON h.bucket = b.id
    GROUP BY d.id ORDER BY d.state, d.name
    """

  private static let sources = """
    SELECT s.schema, s.name, sluice.uncaptured(s.id) FROM sluice.sources s
    ORDER BY s.schema, s.name
    """
}
