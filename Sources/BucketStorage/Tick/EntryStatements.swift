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

  // MARK: Ticks

  /// Compares and writes what differs. Tombstones come first, so that a row whose key changed but not
  /// its object id ends as a row.
  func update(_ dirty: DirtyKeys) -> String {
    """
    WITH \(compiled.isPlain ? paired(dirty) : joined(dirty)),
    \(heads),
    changes AS (
      INSERT INTO sluice.bucket_changes AS c (tick, bucket, last_id)
      SELECT $2::bigint, bucket, last_id FROM g
      ON CONFLICT (tick, bucket) DO UPDATE SET last_id = excluded.last_id)\(metByTick)
    SELECT \(written), \(advanced) FROM g
    """
  }

  /// A key gives one row at most, so what is stored for it either is that row's or has left its bucket:
  /// one pass over the keys pairs the two. The wide rows are kept once, in `pairs`, and numbered by their
  /// keys: a sort or a window over them would take a third as long as writing them.
  private func paired(_ dirty: DirtyKeys) -> String {
    let isSame = "(p.old_bucket = bk.bucket AND p.old_object = p.object_id)"
    let wasSame = "(o.old_bucket = b.bucket AND o.old_object = o.object_id)"
    return """
      d AS MATERIALIZED (
        SELECT k.key, row_number() OVER () AS n FROM (\(keys(dirty))) k),
      t AS MATERIALIZED (SELECT sluice.tick_last_id() AS last_id, count(*) AS keys FROM d),
      pairs AS MATERIALIZED (
        SELECT d.n, d.key COLLATE "C" AS key, x.bucket_key COLLATE "C" AS bucket_key,
          x.object_id COLLATE "C" AS object_id, x.data COLLATE "C" AS data,
          o.ctid AS at, o.bucket AS old_bucket, o.object_id AS old_object,
          o.data IS NOT NULL AS was, o.checksum AS old_checksum,
          o.data = x.data COLLATE "C" AS is_equal
        FROM \(CompiledQuery.keys(of: "d", keeping: ["n"]))
        LEFT JOIN LATERAL (\(compiled.evaluation(key: "d.key"))) x
          ON x.bucket_key IS NOT NULL AND x.object_id IS NOT NULL AND x.data IS NOT NULL
        LEFT JOIN LATERAL (
          SELECT e.ctid, e.bucket, e.object_id, e.data, e.checksum
          FROM sluice.entries e WHERE \(stored(key: "d.key")) OFFSET 0) o ON true),
      \(buckets(of: "pairs")),
      upd AS (
        UPDATE sluice.entries e SET id = x.id, stamp = $1::text, data = x.data,
          checksum = CASE WHEN x.data IS NULL THEN 0 ELSE \(checksum(of: "x")) END
        FROM (
          SELECT p.at, p.object_id, p.was, p.old_checksum,
            CASE WHEN \(isSame) THEN p.data END AS data,
            CASE WHEN \(isSame) THEN \(id("t.keys + p.n")) ELSE \(id("p.n")) END AS id
          FROM pairs p CROSS JOIN t LEFT JOIN bk ON bk.bucket_key = p.bucket_key
          WHERE p.at IS NOT NULL
            AND CASE WHEN \(isSame) THEN NOT coalesce(p.is_equal, false) ELSE p.was END) x
        WHERE e.ctid = x.at
        RETURNING e.bucket, e.id, (e.data IS NOT NULL)::int - x.was::int AS grown,
          e.checksum # CASE WHEN x.was THEN x.old_checksum ELSE 0 END AS digest),
      \(inserted("""
        SELECT p.key AS source_key, bk.bucket, p.object_id, p.data, \(id("t.keys + p.n")) AS id
        FROM pairs p CROSS JOIN t JOIN bk ON bk.bucket_key = p.bucket_key WHERE p.at IS NULL
        UNION ALL
        (SELECT DISTINCT ON (p.n) p.key, bk.bucket, p.object_id, p.data, \(id("t.keys + p.n"))
        FROM pairs p CROSS JOIN t JOIN bk ON bk.bucket_key = p.bucket_key
        WHERE p.at IS NOT NULL AND NOT \(isSame) AND p.n NOT IN (
          SELECT o.n FROM pairs o JOIN bk b ON b.bucket_key = o.bucket_key
          WHERE o.at IS NOT NULL AND \(wasSame)))
        """)),
      g AS MATERIALIZED (
        SELECT bucket, max(id) AS last_id, sum(grown)::bigint AS grown, bit_xor(digest) AS digest,
          count(*) AS written
        FROM (SELECT bucket, id, grown, digest FROM upd
          UNION ALL SELECT bucket, id, 1, checksum FROM ins) w
        GROUP BY bucket)
      """
  }

  /// The general case: a key gives any number of rows, and has any number stored.
  private func joined(_ dirty: DirtyKeys) -> String {
    """
    d AS MATERIALIZED (\(keys(dirty))),
    \(evaluated(compiled.evaluation(dirty: "d"))),
    \(buckets(of: "ev")),
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
    diff AS MATERIALIZED (
      SELECT y.*, CASE WHEN y.data IS NULL THEN 0 ELSE \(checksum(of: "y")) END AS checksum
      FROM (SELECT c.*, \(id("c.n")) AS id FROM changed c
        CROSS JOIN (SELECT sluice.tick_last_id() AS last_id OFFSET 0) t) y),
    g AS MATERIALIZED (
      SELECT bucket, max(id) AS last_id, sum((data IS NOT NULL)::int - was)::bigint AS grown,
        bit_xor(checksum # old_checksum) AS digest, count(*) AS written
      FROM diff GROUP BY bucket),
    upd AS (
      UPDATE sluice.entries e SET id = f.id, stamp = $1::text, data = f.data, checksum = f.checksum
      FROM diff f WHERE e.ctid = f.at),
    \(inserted("SELECT * FROM diff f WHERE f.at IS NULL"))
    """
  }

  /// Notes that ticks wrote entries which a backfill has yet to come to.
  private var metByTick: String {
    guard !query.isComplete else { return "" }
    return """
      ,
      met AS (
        UPDATE sluice.queries q SET has_ticked = true
        WHERE q.id = \(query.id) AND NOT q.has_ticked AND EXISTS (SELECT FROM g))
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
        + "WHERE b.definition = \(query.definition) AND e.query = \(query.id) ORDER BY key"
    }
  }

  // MARK: Backfills

  /// Writes the next page of keys that have no entries yet. A key that has some was brought up to date
  /// by a tick, so it is left alone. `$3` is the last key of the page before, unless it is the first.
  func backfill(first: Bool, limit: Int) -> String {
    let page = compiled.source.key.page(
      of: compiled.columns, schema: compiled.source.schema, table: compiled.source.name,
      after: first ? nil : "$3::text", limit: "\(limit)")
    let isNew =
      "(NOT (SELECT q.has_ticked FROM sluice.queries q WHERE q.id = \(query.id)) "
      + "OR NOT EXISTS (SELECT FROM sluice.entries e WHERE \(stored(key: "x.source_key"))))"
    return """
      WITH page AS MATERIALIZED (\(page)),
      \(evaluated(compiled.evaluation(rows: "page"), where: isNew)),
      \(buckets(of: "ev")),
      \(inserted("""
        SELECT ev.*, bk.bucket, \(id("row_number() OVER ()")) AS id
        FROM ev JOIN bk ON bk.bucket_key = ev.bucket_key
        CROSS JOIN (SELECT sluice.tick_last_id() AS last_id OFFSET 0) t
        """)),
      g AS MATERIALIZED (
        SELECT bucket, max(id) AS last_id, count(*) AS grown, bit_xor(checksum) AS digest,
          count(*) AS written
        FROM ins GROUP BY bucket),
      \(heads),
      progress AS (
        UPDATE sluice.queries q SET \(BackfillProgress.assignments(compiled.source.key, limit: limit))
        WHERE q.id = \(query.id) AND $2::bigint IS NOT NULL)
      SELECT \(written), \(advanced), (SELECT count(*) FROM page) FROM g
      """
  }

  // MARK: Parts

  /// What the rules give by an evaluation that has the columns `source_key` and those of `evaluation(key:)`.
  private func evaluated(_ evaluation: String, where condition: String? = nil) -> String {
    // Two branches, or a joined list, can give one object twice; which data wins must not be chance.
    let distinct = compiled.isPlain ? "" : "DISTINCT ON (x.source_key, x.bucket_key, x.object_id) "
    let order =
      compiled.isPlain
      ? "" : " ORDER BY x.source_key, x.bucket_key, x.object_id, x.data COLLATE \"C\""
    let condition = condition.map { " AND \($0)" } ?? ""
    // Without the OFFSET the conditions would have the text of the data made a second time.
    return """
      ev AS MATERIALIZED (
        SELECT \(distinct)x.source_key COLLATE "C" AS source_key, x.bucket_key COLLATE "C" AS bucket_key,
          x.object_id COLLATE "C" AS object_id, x.data COLLATE "C" AS data
        FROM (SELECT * FROM (\(evaluation)) r OFFSET 0) x
        WHERE x.bucket_key IS NOT NULL AND x.object_id IS NOT NULL
          AND x.data IS NOT NULL\(condition)\(order))
      """
  }

  /// The numbers of the buckets that come of it.
  private func buckets(of relation: String) -> String {
    """
    bk AS MATERIALIZED (
      SELECT k.bucket_key, sluice.bucket_of(\(query.definition), k.bucket_key) AS bucket
      FROM (SELECT DISTINCT bucket_key FROM \(relation) WHERE bucket_key IS NOT NULL) k)
    """
  }

  private func stored(key: String) -> String {
    "hashtextextended(e.source_key, e.query) = hashtextextended(\(key) COLLATE \"C\", \(query.id)::bigint) "
      + "AND e.query = \(query.id) AND e.source_key = \(key)"
  }

  /// Ids run on from the tick's last one, `t.last_id`, and leave out every multiple of 16.
  private func id(_ number: String) -> String {
    "t.last_id + \(number) + (\(number) - 1) / 15"
  }

  private func checksum(of row: String) -> String {
    "hashtextextended(\(SQLLiteral(compiled.outputName)) || \(row).object_id || \(row).data, \(row).id)"
  }

  private func inserted(_ rows: String) -> String {
    """
    ins AS (
      INSERT INTO sluice.entries
        (query, bucket, id, checksum, source_key, object_id, stamp, data)
      SELECT \(query.id), i.bucket, i.id, \(checksum(of: "i")), i.source_key, i.object_id,
        $1::text, i.data
      FROM (\(rows)) i
      RETURNING bucket, id, checksum)
    """
  }

  private let heads = """
    heads AS (
      INSERT INTO sluice.bucket_heads AS h (bucket, last_id, row_count, digest)
      SELECT bucket, last_id, grown, digest FROM g
      ON CONFLICT (bucket) DO UPDATE SET last_id = excluded.last_id,
        row_count = h.row_count + excluded.row_count, digest = h.digest # excluded.digest)
    """

  private let written = "coalesce(sum(written), 0)::bigint"

  /// The next statement runs on from a multiple of 15 plus one, so that `n` starts at a boundary.
  private let advanced = """
    set_config('sluice.last_id',
      coalesce((max(last_id) / 16 + 1) * 16, sluice.tick_last_id())::text, true)
    """
}

/// Keys that transactions wrote to the inbox and the last tick did not see, and those that the clock made
/// due. Binds: `$1` stamp, or NULL for none that are due, `$3` xmax and `$4` xip of the last tick's snapshot.
enum CapturedKeys {
  /// They come in order, so that neighbours in the table's index and among what is stored are looked up
  /// one after the other: in the order of a hash a large tick takes half as long again.
  static func sql(source: Int64) -> String {
    "SELECT k.key COLLATE \"C\" AS key FROM sluice.inbox i "
      + "CROSS JOIN LATERAL unnest(i.keys) AS k(key) "
      + "WHERE i.source = \(source) AND \(InboxRing.window(xmax: "$3", xip: "$4")) "
      + "UNION \(WakeupStatements.due(source: source)) ORDER BY key"
  }
}

/// Where a backfill has got to after its page.
enum BackfillProgress {
  static func assignments(_ key: SourceKey, limit: Int) -> String {
    """
    backfilled_to = coalesce((SELECT \(key.text(of: "p")) FROM page p
          OFFSET (SELECT greatest(count(*) - 1, 0) FROM page)), q.backfilled_to),
      is_complete = (SELECT count(*) FROM page) < \(limit),
      rows_read = q.rows_read + (SELECT count(*) FROM page)
    """
  }
}
