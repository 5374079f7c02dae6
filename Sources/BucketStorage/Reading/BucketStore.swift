package import Postgres
internal import SQLGeneration
package import SyncProtocol
internal import Synchronization

/// The reading side: what streams and pages are made of.
///
/// Every answer comes from one statement, hence one snapshot, and names the tick that it shows. A
/// connection of the pool is held only while its statement runs.
package final class BucketStore: Sendable {
  /// Settings that the pool's connections must have.
  package static let settings: [String: String] = CompiledRules.sessionSettings.merging([
    // Whatever the statistics say, a request is answered by index probes.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "force_generic_plan",
    "default_transaction_read_only": "on",
    "statement_timeout": "30s",
  ]) { _, ours in ours }

  /// A request may hold so many buckets at once.
  package let bucketLimit: Int

  private let pool: PostgresPool
  private let grants = Mutex<GrantStatement?>(nil)

  /// The pool's configuration must have `settings`.
  package init(pool: PostgresPool, bucketLimit: Int = 1_000) {
    self.pool = pool
    self.bucketLimit = bucketLimit
  }

  // MARK: Checkpoints

  /// What a request may hold, at the tick in force.
  package func checkpoint(for request: RequestContext) async throws -> CheckpointState {
    for _ in 0..<5 {
      let statement = try await grantStatement()
      let result = try await query(
        statement.sql,
        [
          .text(request.claimsJSON), .text(request.parametersJSON),
          .text(request.subscriptionsJSON), .boolean(request.includeDefaults),
        ])
      if let state = try statement.state(result) { return state }
      // Other rules came into force between the two.
      grants.withLock { $0 = nil }
    }
    throw StorageError(.noRules, "the rules changed while they were asked")
  }

  /// The tables of the replicas, by the rules in force.
  package func publishedSchema() async throws -> PublishedSchema {
    try await grantStatement().schema
  }

  /// The tick in force, and the generation of rules that it was made by.
  package func head() async throws -> (tick: Tick, generation: Int64) {
    let result = try await query(
      "SELECT number, stamp, boundary_id, generation FROM sluice.ticks ORDER BY number DESC LIMIT 1"
    )
    guard let head = ResultHead(result, row: 0, column: 0) else { throw Self.noTick }
    if grants.withLock({ $0.map { $0.generation != head.generation } ?? false }) {
      grants.withLock { $0 = nil }
    }
    return (head.tick, head.generation)
  }

  private func grantStatement() async throws -> GrantStatement {
    if let statement = grants.withLock(\.self) { return statement }
    let rules = try await pool.withConnection { try await StoredRules.load($0) }
    guard let active = rules.active else {
      throw StorageError(
        .noRules, "no rules are in force in this database", hint: "Run `sluice deploy`.")
    }
    let statement = GrantStatement(active, bucketLimit: bucketLimit)
    grants.withLock { $0 = statement }
    return statement
  }

  /// The names of those of the buckets that belong to the rules in force.
  package func names(of rowIDs: [Int64]) async throws -> [Int64: String] {
    let result = try await query(
      """
      SELECT k.id, d.name || k.key FROM sluice.buckets k
      JOIN sluice.definitions d ON d.id = k.definition AND d.state = 'active'
      WHERE k.id = ANY ($1::bigint[])
      """, [.integerArray(rowIDs)])
    var names: [Int64: String] = [:]
    for row in 0..<result.rowCount {
      guard let id = result.int(row, 0) else { continue }
      names[id] = result.string(row, 1)
    }
    return names
  }

  // MARK: Entries

  /// Entries of a bucket with `after < id <= through`, in order, and the bucket's head, in one snapshot.
  ///
  /// A page ends after `limit` entries or `maxBytes` of data. Of an entry that alone is larger it consists
  /// when that has `largest` bytes at most; otherwise the page is empty, and says what it would take.
  package func page(
    bucket: Int64, after: Int64, through: Int64, limit: Int = 1_000, maxBytes: Int = 1 << 20,
    largest: Int = .max
  ) async throws -> BucketPage {
    // Of the few queries that a bucket's rows come from, a list is gone through quicker than an index; the
    // join is an outer one so that the rows lead, in their order.
    let result = try await query(
      """
      WITH q AS MATERIALIZED (
        SELECT q.id, q.output_name, q.uses_subkey, q.ordinal FROM sluice.buckets k
        JOIN sluice.queries q ON q.definition = k.definition WHERE k.id = $1::bigint)
      SELECT h.number::text AS c1, h.stamp AS c2, h.boundary_id AS c3, h.generation::text AS c4,
        b.row_count::text AS c5, lpad(to_hex(b.digest), 16, '0') AS c6,
        coalesce(b.last_id, 0) || ',' || CASE WHEN d.state = 'active'
          THEN greatest(b.floor_id, d.floor_id) ELSE h.boundary_id END || ','
          || coalesce((SELECT octet_length(e.data) FROM sluice.entries e
            WHERE e.bucket = k.id AND e.id > $2::bigint AND e.id <= $3::bigint
            ORDER BY e.id LIMIT 1), 0) AS c7
      FROM (SELECT * FROM sluice.ticks ORDER BY number DESC LIMIT 1) h
      LEFT JOIN sluice.buckets k ON k.id = $1::bigint
      LEFT JOIN sluice.definitions d ON d.id = k.definition
      LEFT JOIN sluice.bucket_heads b ON b.bucket = k.id
      UNION ALL
      (SELECT q.output_name, x.object_id, x.id, x.stamp, lpad(to_hex(x.checksum), 16, '0'), x.data,
        CASE WHEN q.uses_subkey THEN q.ordinal || ':' || x.source_key ELSE '' END
      FROM (SELECT e.*, coalesce(octet_length(e.data), 0) AS bytes,
          sum(octet_length(e.data)) OVER (ORDER BY e.id ROWS UNBOUNDED PRECEDING) AS bytes_so_far
        FROM (
          SELECT * FROM sluice.entries e
          WHERE e.bucket = $1::bigint AND e.id > $2::bigint AND e.id <= $3::bigint
          ORDER BY e.id LIMIT $4::bigint) e) x
      LEFT JOIN q ON q.id = x.query
      WHERE coalesce(x.bytes_so_far, 0) <= $5::bigint
        OR x.bytes_so_far = x.bytes AND x.bytes <= $6::bigint
      ORDER BY x.id)
      """,
      [
        .integer(bucket), .integer(after), .integer(through), .integer(Int64(limit)),
        .integer(Int64(maxBytes)), .integer(Int64(largest)),
      ])
    guard let page = BucketPage(result, bucket: bucket, through: through) else {
      throw Self.noTick
    }
    return page
  }

  /// The entries of several buckets after one boundary, up to the tick in force, with the buckets'
  /// heads, in one snapshot: ordered by bucket, then id.
  ///
  /// They end after `limit` entries or `maxBytes` of data; a single larger entry may come first.
  package func liveEntries(
    buckets: [Int64], after: Int64, limit: Int = 10_000, maxBytes: Int = 8 << 20
  ) async throws -> LiveEntries {
    let result = try await query(
      """
      WITH h AS (SELECT * FROM sluice.ticks ORDER BY number DESC LIMIT 1)
      SELECT h.number::text, h.stamp, h.boundary_id, h.generation::text, NULL, NULL, NULL,
        NULL::bigint FROM h
      UNION ALL
      (SELECT NULL, b.row_count::text, b.last_id, lpad(to_hex(b.digest), 16, '0'), NULL,
        (CASE WHEN d.state = 'active' THEN greatest(b.floor_id, d.floor_id)
          ELSE h.boundary_id END)::text, NULL, b.bucket
      FROM h, unnest($1::bigint[]) u(bucket) JOIN sluice.bucket_heads b ON b.bucket = u.bucket
      JOIN sluice.buckets k ON k.id = b.bucket JOIN sluice.definitions d ON d.id = k.definition)
      UNION ALL
      (SELECT y.output_name, y.object_id, y.id, y.stamp, y.checksum, y.data, y.subkey, y.bucket
      FROM (SELECT x.*, coalesce(octet_length(x.data), 0) AS bytes,
          sum(octet_length(x.data)) OVER (ORDER BY x.position, x.id ROWS UNBOUNDED PRECEDING)
            AS bytes_so_far
        FROM (SELECT q.output_name, e.object_id, e.id, e.stamp,
            lpad(to_hex(e.checksum), 16, '0') AS checksum, e.data,
            CASE WHEN q.uses_subkey THEN q.ordinal || ':' || e.source_key ELSE '' END AS subkey,
            u.bucket, u.position
          FROM unnest($1::bigint[]) WITH ORDINALITY u(bucket, position)
          CROSS JOIN LATERAL (SELECT * FROM sluice.entries e
            WHERE e.bucket = u.bucket AND e.id > $2::bigint ORDER BY e.id) e
          JOIN sluice.queries q ON q.id = e.query
          ORDER BY u.position, e.id LIMIT $3::bigint) x) y
      WHERE coalesce(y.bytes_so_far, 0) <= $4::bigint OR y.bytes_so_far = y.bytes
      ORDER BY y.position, y.id)
      """,
      [
        .integerArray(buckets), .integer(after), .integer(Int64(limit)),
        .integer(Int64(maxBytes)),
      ])
    guard let entries = LiveEntries(result, after: after) else { throw Self.noTick }
    return entries
  }

  // MARK: History

  /// What changed after a tick; nil when the database no longer remembers that tick.
  package func changes(since tick: Int64) async throws -> TickChanges? {
    let result = try await query(
      """
      SELECT h.number, h.stamp, h.boundary_id, h.generation,
        EXISTS (SELECT FROM sluice.ticks t WHERE t.number = $1::bigint)
      FROM (SELECT * FROM sluice.ticks ORDER BY number DESC LIMIT 1) h
      UNION ALL
      (SELECT DISTINCT c.bucket, NULL, NULL::bigint, NULL::bigint, NULL::boolean
      FROM sluice.bucket_changes c WHERE c.tick > $1::bigint)
      UNION ALL
      (SELECT DISTINCT c.lookup, c.key, NULL::bigint, NULL::bigint, NULL::boolean
      FROM sluice.lookup_changes c WHERE c.tick > $1::bigint)
      """, [.integer(tick)])
    guard let head = ResultHead(result, row: 0, column: 0) else { throw Self.noTick }
    guard result.firstBool(4) == true else { return nil }
    var changes = TickChanges(
      head: head.tick, generation: head.generation, buckets: [], lookupKeys: [])
    for row in 1..<result.rowCount {
      guard let id = result.int(row, 0) else { continue }
      if let key = result.string(row, 1) {
        changes.lookupKeys.append(LookupKey(lookup: id, key: key))
      } else {
        changes.buckets.append(id)
      }
    }
    return changes
  }

  /// For each position, whether this database's history gave it out.
  package func survival(of positions: [(stamp: String, id: Int64)]) async throws -> [Bool] {
    guard !positions.isEmpty else { return [] }
    let result = try await query(
      """
      SELECT \(IDRanges.contains(stamp: "p.stamp", id: "p.id"))
      FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY p(stamp, id, position)
      ORDER BY p.position
      """,
      [.textArray(positions.map(\.stamp)), .integerArray(positions.map(\.id))])
    return positions.indices.map { result.bool($0, 0) ?? false }
  }

  /// A connection that took in a larger answer is not used again.
  private static let connectionBytes = 16 << 20

  private static let noTick = StorageError(
    .notInstalled, "the database has no first tick", hint: "Run `sluice install`.")

  private func query(
    _ sql: String, _ binds: [PostgresValue] = []
  ) async throws -> PostgresResult {
    try await pool.withConnection { connection in
      let result = try await connection.query(sql, binds)
      // libpq's buffer is as large as the largest row that it ever took in, and never becomes smaller.
      if result.byteCount > Self.connectionBytes { await connection.close() }
      return result
    }
  }
}
