internal import SQLGeneration

/// The statements that bring the rows of one lookup up to a snapshot. Binds as in `EntryStatements`.
struct LookupStatements {
  let lookup: StoredLookup

  private var compiled: CompiledLookup { lookup.compiled }

  /// With `withdrawsOnly` what no longer holds goes, and nothing comes.
  func update(_ dirty: DirtyKeys, withdrawsOnly: Bool = false) -> String {
    let kept = withdrawsOnly ? "o.source_key IS NOT NULL" : "true"
    return """
      WITH d AS MATERIALIZED (\(keys(dirty))),
      \(evaluated(compiled.evaluation(dirty: "d"))),
      old AS (
        SELECT o.* FROM d CROSS JOIN LATERAL (
          SELECT p.ctid AS at, p.source_key, p.key, p.value
          FROM sluice.parameters p WHERE \(stored(key: "d.key")) OFFSET 0) o),
      diff AS MATERIALIZED (
        SELECT o.at, coalesce(n.source_key, o.source_key) AS source_key,
          coalesce(n.key, o.key) AS key, n.value
        FROM ev n FULL JOIN old o
          ON o.source_key = n.source_key AND o.key = n.key AND o.value = n.value
        WHERE (n.source_key IS NULL OR o.source_key IS NULL) AND \(kept)),
      del AS (DELETE FROM sluice.parameters p USING diff f WHERE p.ctid = f.at),
      \(inserted) WHERE f.at IS NULL),
      changes AS (
        INSERT INTO sluice.lookup_changes (tick, lookup, key)
        SELECT DISTINCT $2::bigint, \(lookup.id)::bigint, key FROM diff)
      SELECT count(*), $1::text FROM diff
      """
  }

  func backfill(first: Bool, limit: Int) -> String {
    let page = compiled.source.key.page(
      of: compiled.columns, schema: compiled.source.schema, table: compiled.source.name,
      after: first ? nil : "$3::text", limit: "\(limit)")
    let isNew =
      "NOT EXISTS (SELECT FROM sluice.parameters p WHERE \(stored(key: "x.source_key")))"
    return """
      WITH page AS MATERIALIZED (\(page)),
      \(evaluated(compiled.evaluation(rows: "page"), where: isNew)),
      diff AS MATERIALIZED (SELECT source_key, key, value FROM ev),
      \(inserted)),
      progress AS (
        UPDATE sluice.lookups q SET \(BackfillProgress.assignments(compiled.source.key, limit: limit))
        WHERE q.id = \(lookup.id) AND $2::bigint IS NOT NULL)
      SELECT count(*), $1::text, (SELECT count(*) FROM page) FROM diff
      """
  }

  private func keys(_ dirty: DirtyKeys) -> String {
    switch dirty {
    case .captured:
      return CapturedKeys.sql(source: lookup.source.id)
    case .everything, .page:
      return "SELECT \(compiled.source.key.text(of: "s")) COLLATE \"C\" AS key "
        + "FROM \(SQLIdentifier(schema: compiled.source.schema, name: compiled.source.name)) s "
        + "UNION SELECT p.source_key FROM sluice.parameters p WHERE p.lookup = \(lookup.id) "
        + "ORDER BY key"
    }
  }

  private func evaluated(_ evaluation: String, where condition: String? = nil) -> String {
    let condition = condition.map { " AND \($0)" } ?? ""
    return """
      ev AS MATERIALIZED (
        SELECT DISTINCT x.source_key COLLATE "C" AS source_key, x.key COLLATE "C" AS key,
          x.value COLLATE "C" AS value
        FROM (SELECT * FROM (\(evaluation)) r OFFSET 0) x
        WHERE x.key IS NOT NULL AND x.value IS NOT NULL\(condition))
      """
  }

  private func stored(key: String) -> String {
    "hashtextextended(p.source_key, p.lookup) = "
      + "hashtextextended(\(key) COLLATE \"C\", \(lookup.id)::bigint) "
      + "AND p.lookup = \(lookup.id) AND p.source_key = \(key)"
  }

  private var inserted: String {
    """
    ins AS (
      INSERT INTO sluice.parameters (lookup, key, value, source_key)
      SELECT \(lookup.id), f.key, f.value, f.source_key FROM diff f
    """
  }
}
