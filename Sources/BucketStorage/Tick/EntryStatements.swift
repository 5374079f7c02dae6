internal import SQLGeneration

/// The statements that bring the entries of one query up to a snapshot.
///
/// Each evaluates the rules for some keys, compares with what is stored for them, numbers what differs
/// and writes it, with the buckets' heads, in one go. Joins lead outward from the keys, one index lookup
/// each, whatever the planner thinks of the tables' sizes. Binds: `$1` stamp, `$2` tick number, and for
/// captured keys `$3` xmax and `$4` xip of the last tick's snapshot.
struct EntryStatements {
  let query: StoredQuery

  private var compiled: CompiledQuery { query.compiled }

  /// Compares and writes what differs. Tombstones come first, so that a row whose key changed but not
  /// its object id ends as a row.
  func update(_ dirty: DirtyKeys) -> String {
    """
    WITH d AS MATERIALIZED (\(keys(dirty))),
    \(evaluated),
    old AS (
      SELECT o.* FROM d CROSS JOIN LATERAL (
        SELECT e.ctid AS at, e.source_key, e.bucket, e.object_id, e.data, e.checksum
        FROM sluice.entries e WHERE \(stored(key: "d.key")) OFFSET 0) o),
    changed AS (
      SELECT o.at, coalesce(n.source_key, o.source_key) AS source_key,
        coalesce(n.bucket, o.bucket) AS bucket, coalesce(n.object_id, o.object_id) AS object_id,
        n.data, (o.data IS NOT NULL)::int AS was, coalesce(o.checksum, 0) AS old_checksum,
        row_number() OVER (ORDER BY n.data IS NOT NULL) AS n
      FROM (SELECT ev.source_key, bk.bucket, ev.object_id, ev.data
        FROM ev JOIN bk ON bk.bucket_key = ev.bucket_key) n
      FULL JOIN old o ON o.source_key = n.source_key AND o.bucket = n.bucket
        AND o.object_id = n.object_id
      WHERE n.data IS DISTINCT FROM o.data),
    \(numbered),
    upd AS (
      UPDATE sluice.entries e SET id = f.id, stamp = $1::text, data = f.data, checksum = f.checksum
      FROM diff f WHERE e.ctid = f.at),
    \(inserted) WHERE f.at IS NULL),
    \(heads),
    changes AS (
      INSERT INTO sluice.bucket_changes AS c (tick, bucket, last_id)
      SELECT $2::bigint, bucket, last_id FROM g
      ON CONFLICT (tick, bucket) DO UPDATE SET last_id = excluded.last_id)
    SELECT count(*), \(advanced) FROM diff
    """
  }

  /// Writes the next page of keys that have no entries yet. A key that has some was brought up to date
  /// by a tick, so it is left alone. `$3` is the last key of the page before, unless it is the first.
  func backfill(first: Bool, limit: Int) -> String {
    let page = compiled.source.key.page(
      schema: compiled.source.schema, table: compiled.source.name,
      after: first ? nil : "$3::text", limit: "\(limit)")
    return """
      WITH page AS MATERIALIZED (\(page)),
      d AS MATERIALIZED (
        SELECT p.key COLLATE "C" AS key FROM page p LEFT JOIN LATERAL (
          SELECT 1 AS found FROM sluice.entries e WHERE \(stored(key: "p.key")) LIMIT 1) s ON true
        WHERE s.found IS NULL),
      \(evaluated),
      changed AS (
        SELECT NULL::tid AS at, ev.source_key, bk.bucket, ev.object_id, ev.data, 0 AS was,
          0::bigint AS old_checksum, row_number() OVER () AS n
        FROM ev JOIN bk ON bk.bucket_key = ev.bucket_key),
      \(numbered),
      \(inserted)),
      \(heads),
      progress AS (
        UPDATE sluice.queries q SET \(BackfillProgress.assignments(limit: limit))
        WHERE q.id = \(query.id) AND $2::bigint IS NOT NULL)
      SELECT count(*), \(advanced), (SELECT count(*) FROM page) FROM diff
      """
  }

  private func keys(_ dirty: DirtyKeys) -> String {
    switch dirty {
    case .captured:
      return CapturedKeys.sql(source: query.source.id)
    case .everything, .page:
      return "SELECT \(compiled.source.key.text(of: "s")) COLLATE \"C\" AS key "
        + "FROM \(SQLIdentifier(schema: compiled.source.schema, name: compiled.source.name)) s "
        + "UNION SELECT e.source_key FROM sluice.buckets b "
        + "JOIN sluice.entries e ON e.bucket = b.id "
        + "WHERE b.definition = \(query.definition) AND e.query = \(query.id)"
    }
  }

  /// The rules applied to the keys of `d`, and the numbers of the buckets that come of it.
  private var evaluated: String {
    let isPlain = compiled.branches.count == 1 && compiled.branches[0].joins.isEmpty
    // Two branches, or a joined list, can give one object twice; which data wins must not be chance.
    let distinct = isPlain ? "" : "DISTINCT ON (x.source_key, x.bucket_key, x.object_id) "
    let order =
      isPlain ? "" : " ORDER BY x.source_key, x.bucket_key, x.object_id, x.data COLLATE \"C\""
    return """
      ev AS MATERIALIZED (
        SELECT \(distinct)x.source_key COLLATE "C" AS source_key, x.bucket_key COLLATE "C" AS bucket_key,
          x.object_id COLLATE "C" AS object_id, x.data COLLATE "C" AS data
        FROM (\(compiled.evaluation(dirty: "d"))) x
        WHERE x.bucket_key IS NOT NULL AND x.object_id IS NOT NULL AND x.data IS NOT NULL\(order)),
      bk AS MATERIALIZED (
        SELECT k.bucket_key, sluice.bucket_of(\(query.definition), k.bucket_key) AS bucket
        FROM (SELECT DISTINCT bucket_key FROM ev) k)
      """
  }

  private func stored(key: String) -> String {
    "hashtextextended(e.source_key, e.query) = hashtextextended(\(key) COLLATE \"C\", \(query.id)::bigint) "
      + "AND e.query = \(query.id) AND e.source_key = \(key)"
  }

  /// Ids run on from the tick's last one and leave out every multiple of 16.
  private var numbered: String {
    """
    diff AS MATERIALIZED (
      SELECT y.*, CASE WHEN y.data IS NULL THEN 0 ELSE hashtextextended(
        \(SQLLiteral(compiled.outputName)) || y.object_id || y.data, y.id) END AS checksum
      FROM (SELECT x.*, sluice.tick_last_id() + x.n + (x.n - 1) / 15 AS id FROM changed x) y),
    g AS MATERIALIZED (
      SELECT bucket, max(id) AS last_id, sum((data IS NOT NULL)::int - was)::bigint AS grown,
        bit_xor(checksum # old_checksum) AS digest
      FROM diff GROUP BY bucket)
    """
  }

  private var inserted: String {
    """
    ins AS (
      INSERT INTO sluice.entries
        (query, bucket, id, checksum, source_key, object_id, stamp, data)
      SELECT \(query.id), f.bucket, f.id, f.checksum, f.source_key, f.object_id, $1::text, f.data
      FROM diff f
    """
  }

  private let heads = """
    heads AS (
      INSERT INTO sluice.bucket_heads AS h (bucket, last_id, row_count, digest)
      SELECT bucket, last_id, grown, digest FROM g
      ON CONFLICT (bucket) DO UPDATE SET last_id = excluded.last_id,
        row_count = h.row_count + excluded.row_count, digest = h.digest # excluded.digest)
    """

  /// The next statement runs on from a multiple of 15 plus one, so that `n` starts at a boundary.
  private let advanced = """
    set_config('sluice.last_id',
      coalesce((max(id) / 16 + 1) * 16, sluice.tick_last_id())::text, true)
    """
}

/// Keys that transactions wrote to the inbox and the last tick did not see, and those that the clock made
/// due. Binds: `$1` stamp, or NULL for none that are due, `$3` xmax and `$4` xip of the last tick's snapshot.
enum CapturedKeys {
  static func sql(source: Int64) -> String {
    "SELECT DISTINCT k.key COLLATE \"C\" AS key FROM sluice.inbox i "
      + "CROSS JOIN LATERAL unnest(i.keys) AS k(key) "
      + "WHERE i.source = \(source) AND \(InboxRing.window(xmax: "$3", xip: "$4")) "
      + "UNION \(WakeupStatements.due(source: source))"
  }
}

/// Where a backfill has got to after its page.
enum BackfillProgress {
  static func assignments(limit: Int) -> String {
    """
    backfilled_to = coalesce((SELECT x.key FROM (
          SELECT p.key, row_number() OVER () AS n FROM page p) x ORDER BY x.n DESC LIMIT 1),
        q.backfilled_to),
      is_complete = (SELECT count(*) FROM page) < \(limit),
      rows_read = q.rows_read + (SELECT count(*) FROM page)
    """
  }
}
