package import Postgres
internal import SQLGeneration

/// Compares what is stored with the rules, evaluated anew in one snapshot of the database.
///
/// Changes that the last tick did not see are left out key by key, so it works while the application
/// writes and the sequencer runs. It reads every source table whole.
package struct Verifier: Sendable {
  /// The settings that its connection must have.
  package static let settings: [String: String] = CompiledRules.sessionSettings.merging([
    "work_mem": "64MB", "row_security": "off", "max_parallel_workers_per_gather": "0",
    "statement_timeout": "0",
  ]) { _, ours in ours }

  /// Differences listed for each thing compared; there may be more.
  private let limit: Int

  package init(limit: Int = 100) {
    self.limit = limit
  }

  package func verify(_ connection: PostgresConnection) async throws -> VerificationReport {
    var report = VerificationReport()
    for attempt in 1...10 {
      let rules = try await StoredRules.load(connection)
      guard let active = rules.active else {
        throw StorageError(
          .noRules, "no rules are in force in this database", hint: "Run `sluice deploy`.")
      }
      do {
        report = try await connection.transaction(isolation: .repeatableRead, readOnly: true) {
          try await compare(active, rules, connection)
        }
        return report
      } catch let error as PostgresError where error.isRetryable && attempt < 10 {
        continue
      } catch is Outdated {
        continue
      }
    }
    return report
  }

  private struct Outdated: Error {}

  private func compare(
    _ active: StoredGeneration, _ rules: StoredRules, _ connection: PostgresConnection
  ) async throws -> VerificationReport {
    guard let head = TickHead(try await connection.query(TickHead.select)) else {
      throw StorageError(.notInstalled, "the database has no first tick")
    }
    guard head.generation == active.id else { throw Outdated() }
    _ = try await connection.query(
      "SELECT set_config('sluice.now', $1::text, true)", [.text(head.tick.stamp)])
    var report = VerificationReport(tick: head.tick)
    let moved = try await connection.query(
      """
      SELECT s.id FROM sluice.sources s
      WHERE s.files <> sluice.files_seen(s.schema, s.name)
      UNION
      SELECT i.source FROM sluice.inbox i
      WHERE i.keys IS NULL AND \(InboxRing.window(xmax: "$1", xip: "$2"))
      """, [.text(head.xmax), .text(head.xip)])
    let pending = Set((0..<moved.rowCount).compactMap { moved.int($0, 0) })
    let window: [PostgresValue] = [.null, .null, .text(head.xmax), .text(head.xip)]
    let still = try await connection.query("SELECT definition FROM sluice.suspensions")
    let suspended = Set((0..<still.rowCount).compactMap { still.int($0, 0) })
    for definition in active.definitions {
      guard !suspended.contains(definition.id) else {
        report.suspended.append(definition.compiled.name)
        continue
      }
      for query in definition.queries {
        guard !pending.contains(query.source.id) else {
          report.skipped.append("\(query.source.schema).\(query.source.name)")
          continue
        }
        let result = try await connection.query(entries(query), window)
        report.add(result, definition: definition.compiled.name)
      }
      for lookup in definition.lookups where !pending.contains(lookup.source.id) {
        let result = try await connection.query(parameters(lookup), window)
        report.add(result, definition: definition.compiled.name)
      }
      let heads = try await connection.query(heads, [.integer(definition.id)])
      report.add(heads, definition: definition.compiled.name)
    }
    // What was compared is what the snapshot shows only if no table was replaced meanwhile.
    _ = try await connection.query(
      "SELECT sluice.assert_files($1::int[])",
      [.integerArray(rules.sources.map(\.id).filter { !pending.contains($0) })])
    return report
  }

  private static let bound = "$1::text IS NULL AND $2::text IS NULL"

  /// Rows: kind, bucket key, object id.
  private func entries(_ query: StoredQuery) -> String {
    """
    WITH pending AS MATERIALIZED (\(CapturedKeys.sql(source: query.source.id))),
    ev AS (
      SELECT x.source_key COLLATE "C" AS source_key, x.bucket_key COLLATE "C" AS bucket_key,
        x.object_id COLLATE "C" AS object_id, min(x.data COLLATE "C") AS data
      FROM (\(query.compiled.evaluationAll())) x
      WHERE x.bucket_key IS NOT NULL AND x.object_id IS NOT NULL AND x.data IS NOT NULL
      GROUP BY 1, 2, 3),
    st AS (
      SELECT e.source_key, b.key AS bucket_key, e.object_id, e.data,
        e.checksum = hashtextextended(
          \(SQLLiteral(query.compiled.outputName)) || e.object_id || e.data, e.id) AS is_sound
      FROM sluice.buckets b JOIN sluice.entries e ON e.bucket = b.id
      WHERE b.definition = \(query.definition) AND e.query = \(query.id) AND e.data IS NOT NULL)
    SELECT CASE WHEN st.data IS NULL THEN 'missing' WHEN ev.data IS NULL THEN 'extra'
        WHEN ev.data <> st.data THEN 'different' ELSE 'checksum' END,
      coalesce(ev.bucket_key, st.bucket_key), coalesce(ev.object_id, st.object_id)
    FROM ev FULL JOIN st ON ev.source_key = st.source_key AND ev.bucket_key = st.bucket_key
      AND ev.object_id = st.object_id
    WHERE (ev.data IS DISTINCT FROM st.data OR NOT st.is_sound) AND \(Self.bound)
      AND coalesce(ev.source_key, st.source_key) NOT IN (SELECT p.key FROM pending p)
    LIMIT \(limit)
    """
  }

  private func parameters(_ lookup: StoredLookup) -> String {
    """
    WITH pending AS MATERIALIZED (\(CapturedKeys.sql(source: lookup.source.id))),
    ev AS (
      SELECT DISTINCT x.source_key COLLATE "C" AS source_key, x.key COLLATE "C" AS key,
        x.value COLLATE "C" AS value
      FROM (\(lookup.compiled.evaluationAll())) x WHERE x.key IS NOT NULL AND x.value IS NOT NULL),
    st AS (
      SELECT p.source_key, p.key, p.value FROM sluice.parameters p WHERE p.lookup = \(lookup.id))
    SELECT CASE WHEN st.key IS NULL THEN 'missing' ELSE 'extra' END,
      coalesce(ev.key, st.key), coalesce(ev.value, st.value)
    FROM ev FULL JOIN st ON ev.source_key = st.source_key AND ev.key = st.key
      AND ev.value = st.value
    WHERE (ev.key IS NULL OR st.key IS NULL) AND \(Self.bound)
      AND coalesce(ev.source_key, st.source_key) NOT IN (SELECT p.key FROM pending p)
    LIMIT \(limit)
    """
  }

  /// Buckets whose head does not fit their entries.
  private var heads: String {
    """
    SELECT 'head', b.key, ''
    FROM sluice.buckets b LEFT JOIN sluice.bucket_heads h ON h.bucket = b.id
    LEFT JOIN (
      SELECT e.bucket, count(e.data) AS live, bit_xor(e.checksum) AS digest, max(e.id) AS last
      FROM sluice.buckets k JOIN sluice.entries e ON e.bucket = k.id
      WHERE k.definition = $1::bigint GROUP BY e.bucket) e ON e.bucket = b.id
    WHERE b.definition = $1::bigint
      AND (coalesce(h.row_count, 0) <> coalesce(e.live, 0)
        OR coalesce(h.digest, 0) <> coalesce(e.digest, 0)
        OR coalesce(h.last_id, 0) < coalesce(e.last, 0))
    LIMIT \(limit)
    """
  }
}

/// What a verification found.
package struct VerificationReport: Sendable, Equatable {
  package struct Difference: Sendable, Equatable {
    package enum Kind: String, Sendable, Equatable {
      /// The rules give a row that is not stored.
      case missing
      /// A row is stored that the rules do not give.
      case extra
      case different
      /// A row's checksum does not fit it.
      case checksum
      /// A bucket's count, digest or last id does not fit its rows.
      case head
    }

    package let kind: Kind
    package let definition: String
    /// The bucket's or the lookup's key.
    package let key: String
    package let object: String
  }

  /// The tick that was compared with.
  package var tick: Tick?
  package var differences: [Difference] = []
  /// Tables that were truncated or rewritten so recently that no tick has seen it.
  package var skipped: [String] = []
  /// Definitions that stand still.
  package var suspended: [String] = []

  package var isSound: Bool { differences.isEmpty }

  mutating func add(_ result: PostgresResult, definition: String) {
    for row in 0..<result.rowCount {
      guard let kind = Difference.Kind(rawValue: result.string(row, 0) ?? "") else { continue }
      differences.append(
        Difference(
          kind: kind, definition: definition, key: result.string(row, 1) ?? "",
          object: result.string(row, 2) ?? ""))
    }
  }
}
