internal import SQLGeneration

/// The statements that keep, for rows whose conditions read the clock, when to look at them again.
///
/// A row that is due counts as captured. Binds as in `EntryStatements`.
struct WakeupStatements {
  let source: StoredSource
  private let table: CompiledTable
  private let moments: [String]

  /// Of what reads the source; nil when nothing of that reads the clock.
  init?(of source: StoredSource, _ queries: [StoredQuery], _ lookups: [StoredLookup]) {
    var moments: [String] = []
    for moment in queries.flatMap(\.compiled.moments) + lookups.flatMap(\.compiled.moments)
    where !moments.contains(moment) { moments.append(moment) }
    guard !moments.isEmpty,
      let table = queries.first?.compiled.source ?? lookups.first?.compiled.source
    else { return nil }
    self.source = source
    self.table = table
    self.moments = moments
  }

  /// SQL for the keys of the source that are due at the tick whose stamp is `$1`.
  static func due(source: Int64) -> String {
    "SELECT w.key FROM sluice.wakeups w WHERE w.source = \(source) AND w.at <= $1::text::timestamptz"
  }

  /// SQL for the sources that have rows due now, as a column `source`.
  static let dueSources =
    "SELECT DISTINCT w.source FROM sluice.wakeups w WHERE w.at <= statement_timestamp()"

  /// Ends what was due at the tick whose stamp is `$1`.
  static let forgetDue = "DELETE FROM sluice.wakeups w WHERE w.at <= $1::text::timestamptz"

  /// After the rows of `dirty` were evaluated: when they turn next.
  func update(_ dirty: DirtyKeys) -> String {
    guard dirty == .captured else {
      return """
        WITH gone AS (DELETE FROM sluice.wakeups w WHERE w.source = \(source.id)),
        new AS (
          INSERT INTO sluice.wakeups (source, at, key)
          SELECT \(source.id), x.at, \(table.key.text(of: "s")) FROM \(name) s \(next))
        SELECT 0::bigint WHERE $2::bigint IS NOT NULL
        """
    }
    return """
      WITH d AS MATERIALIZED (\(CapturedKeys.sql(source: source.id))),
      gone AS (
        DELETE FROM sluice.wakeups w USING d
        WHERE hashtextextended(w.key, w.source::bigint)
            = hashtextextended(d.key COLLATE "C", \(source.id)::bigint)
          AND w.source = \(source.id) AND w.key = d.key),
      new AS (
        INSERT INTO sluice.wakeups (source, at, key)
        SELECT \(source.id), x.at, d.key
        FROM (SELECT k.key COLLATE "default" AS key FROM d k) d
        CROSS JOIN LATERAL (SELECT s.* FROM \(name) s WHERE \(match) OFFSET 0) s \(next))
      SELECT 0::bigint WHERE $2::bigint IS NOT NULL
      """
  }

  /// When the rows of a backfill's page turn. `$3` is the last key of the page before, unless it is the first.
  func backfill(first: Bool, limit: Int) -> String {
    let page = table.key.page(
      schema: table.schema, table: table.name, after: first ? nil : "$3::text", limit: "\(limit)")
    return """
      WITH d AS MATERIALIZED (\(page)),
      new AS (
        INSERT INTO sluice.wakeups (source, at, key)
        SELECT \(source.id), x.at, d.key
        FROM (SELECT k.key COLLATE "default" AS key FROM d k) d
        CROSS JOIN LATERAL (SELECT s.* FROM \(name) s WHERE \(match) OFFSET 0) s \(next))
      SELECT 0::bigint WHERE $2::bigint IS NOT NULL
      """
  }

  private var name: String {
    SQLIdentifier(schema: table.schema, name: table.name).description
  }

  private var match: String { table.key.matches(alias: "s", keyText: "d.key") }

  /// The next turn of the row `s`, if there is one.
  private var next: String {
    let turns = moments.map { moment in
      "CASE WHEN isfinite(\(moment)) AND \(moment) > $1::text::timestamptz THEN \(moment) END"
    }
    return "CROSS JOIN LATERAL (SELECT least(\(turns.joined(separator: ", "))) AS at OFFSET 0) x "
      + "WHERE x.at IS NOT NULL"
  }
}
