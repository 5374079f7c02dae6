internal import Postgres

/// Throws away what is too old, a little at a time, and empties the inbox.
struct Housekeeping {
  let options: SequencerOptions

  private static let batch = 2_000

  /// Answers whether everything is done; false means that another round would find more.
  func run(_ connection: PostgresConnection, head: TickHead) async throws -> Bool {
    _ = try await connection.query("SELECT sluice.empty_inbox()")
    let removed = try await connection.transaction {
      // The fence of the ticks: a gateway that no longer leads must not move floors.
      let last = try await connection.query(TickHead.select + " FOR UPDATE")
      guard TickHead(last)?.tick == head.tick else {
        throw StorageError(.notLeader, "another gateway made the last tick")
      }
      let tombstones = try await connection.query(
        Self.tombstones,
        [.text("\(options.tombstoneRetention / .milliseconds(1))")])
      let ticks = try await connection.query(
        Self.ticks,
        [.integer(options.ticksKept), .text("\(options.tickRetention / .milliseconds(1))")])
      let retired = try await connection.pipeline(Self.retired.map { ($0, []) })
      return [tombstones, ticks].map { $0.firstInt(0) ?? 0 }
        + retired.map { Int64($0.affectedRows) }
    }
    return removed.allSatisfy { $0 < Self.batch }
  }

  private static func stamp(before milliseconds: String) -> String {
    """
    to_char((clock_timestamp() - \(milliseconds)::float8 * interval '1 millisecond')
      AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    """
  }

  /// Whoever has not seen the tombstones that go is below the bucket's floor from now on.
  private static let tombstones = """
    WITH old AS MATERIALIZED (
      SELECT e.ctid AS at FROM sluice.entries e
      WHERE e.data IS NULL AND e.stamp < \(stamp(before: "$1")) ORDER BY e.id LIMIT \(batch)),
    gone AS (
      DELETE FROM sluice.entries e USING old o WHERE e.ctid = o.at AND e.data IS NULL
      RETURNING e.bucket, e.id),
    floors AS (
      UPDATE sluice.bucket_heads h SET floor_id = greatest(h.floor_id, f.id)
      FROM (SELECT bucket, max(id) AS id FROM gone GROUP BY bucket) f WHERE h.bucket = f.bucket)
    SELECT count(*) FROM gone
    """

  private static let ticks = """
    WITH old AS MATERIALIZED (
      SELECT t.number FROM sluice.ticks t
      WHERE t.number < (SELECT max(number) - $1::bigint FROM sluice.ticks)
        AND t.stamp < \(stamp(before: "$2"))
      ORDER BY t.number LIMIT \(batch)),
    buckets AS (
      DELETE FROM sluice.bucket_changes c USING old o WHERE c.tick = o.number),
    lookups AS (
      DELETE FROM sluice.lookup_changes c USING old o WHERE c.tick = o.number),
    gone AS (
      DELETE FROM sluice.ticks t USING old o WHERE t.number = o.number RETURNING 1)
    SELECT count(*) FROM gone
    """

  /// Entries of retired definitions, their buckets, their parameters, and at last themselves.
  private static let retired = [
    """
    DELETE FROM sluice.entries WHERE ctid = ANY (ARRAY(
      SELECT e.ctid FROM sluice.definitions d JOIN sluice.buckets b ON b.definition = d.id
      CROSS JOIN LATERAL (SELECT e.ctid FROM sluice.entries e WHERE e.bucket = b.id OFFSET 0) e
      WHERE d.state = 'retired' LIMIT \(batch)))
    """,
    """
    DELETE FROM sluice.parameters WHERE ctid = ANY (ARRAY(
      SELECT p.ctid FROM sluice.definitions d JOIN sluice.lookups l ON l.definition = d.id
      JOIN sluice.parameters p ON p.lookup = l.id
      WHERE d.state = 'retired' LIMIT \(batch)))
    """,
    """
    WITH old AS MATERIALIZED (
      SELECT b.id FROM sluice.definitions d JOIN sluice.buckets b ON b.definition = d.id
      WHERE d.state = 'retired'
        AND NOT EXISTS (SELECT FROM sluice.entries e WHERE e.bucket = b.id) LIMIT \(batch)),
    heads AS (DELETE FROM sluice.bucket_heads h USING old o WHERE h.bucket = o.id)
    DELETE FROM sluice.buckets b USING old o WHERE b.id = o.id
    """,
    """
    DELETE FROM sluice.definitions d WHERE d.state = 'retired'
      AND NOT EXISTS (SELECT FROM sluice.buckets b WHERE b.definition = d.id)
      AND NOT EXISTS (SELECT FROM sluice.lookups l JOIN sluice.parameters p ON p.lookup = l.id
        WHERE l.definition = d.id)
    """,
  ]
}
