internal import Postgres

/// Runs ticks on the leader's connection: at most one at a time.
struct TickRunner {
  let connection: PostgresConnection
  let backfillLimit: Int
  var head: TickHead
  var rules: StoredRules
  /// Sources to read again whole, whatever their files say.
  var wanted: Set<Int64> = []
  /// The sources over which definitions cannot be evaluated; those definitions stand still.
  var suspended: [Int64: Set<Int64>] = [:]
  /// Of these, the ones that can be evaluated again.
  var resuming: Set<Int64> = []

  /// What came of trying.
  enum Outcome: Sendable {
    /// Nothing had happened.
    case idle
    case committed(TickReport)
    /// These sources have other files: capture has to be seen to before they are read again.
    case filesChanged([Int64])
    /// Rules were deployed, or activated by another leader.
    case rulesChanged
  }

  /// Whether anything happened since the last tick, asked without a transaction id or a lock.
  func poll(files: Bool) async throws -> Bool {
    let sources = rules.sources.map(\.id)
    let result = try await connection.query(
      """
      SELECT EXISTS (SELECT FROM sluice.inbox i
          WHERE \(InboxRing.window(xmax: "$1", xip: "$2")))
        OR EXISTS (\(WakeupStatements.dueSources))
        OR \(StoredRules.versionSQL) <> $3::text
        OR ($4::boolean AND EXISTS (\(Self.changedFiles(sources: "$5::int[]"))))
      """,
      [
        .text(head.xmax), .text(head.xip), .text(rules.version), .boolean(files),
        .integerArray(sources),
      ])
    return result.firstBool(0) ?? true
  }

  /// One tick: a round trip to see what there is to do, and one to do it and commit.
  mutating func tick() async throws -> Outcome {
    let start = ContinuousClock.now
    do {
      let results = try await connection.pipeline(opening)
      guard let found = TickHead(results[1]) else {
        throw StorageError(.notInstalled, "the database has no first tick")
      }
      guard found.tick == head.tick else {
        throw StorageError(.notLeader, "another gateway made the last tick")
      }
      if results[2].firstString(5) != rules.version {
        try await rollBack()
        return .rulesChanged
      }
      let findings = findings(
        session: results[2], dirty: results[3], files: results[4], progress: results[5])
      let unseen = findings.files.keys.filter { !wanted.contains($0) }
      if !unseen.isEmpty {
        try await rollBack()
        return .filesChanged(unseen.sorted())
      }
      guard !findings.isEmpty else {
        try await rollBack()
        return .idle
      }
      return .committed(
        try await write(findings, stamp: results[2].firstString(4) ?? "", since: start))
    } catch {
      try? await rollBack()
      if let error = error as? PostgresError, error.code == "23505", error.table == "ticks" {
        throw StorageError(.notLeader, "another gateway made this tick", underlying: error)
      }
      throw error
    }
  }

  private func rollBack() async throws {
    guard !connection.closed else { return }
    _ = try await connection.pipeline([("ROLLBACK", [])])
  }

  // MARK: Finding

  private var opening: [TickPlan.Statement] {
    let sources = rules.sources.map(\.id)
    return [
      ("BEGIN ISOLATION LEVEL REPEATABLE READ", []),
      // The row of the last tick is the fence: a rival that commits first takes the next number.
      (TickHead.select + " FOR UPDATE", []),
      (
        """
        SELECT 1, sluice.system_identifier()::text, sluice.timeline(),
          sluice.database_oid()::text, sluice.stamp_after($1::text), \(StoredRules.versionSQL)
        """, [.text(head.tick.stamp)]
      ),
      (
        """
        SELECT d.source, bool_or(d.is_whole) FROM (
          SELECT i.source, i.keys IS NULL AS is_whole FROM sluice.inbox i
          WHERE \(InboxRing.window(xmax: "$1", xip: "$2"))
          UNION ALL
          SELECT w.source, false
          FROM (\(WakeupStatements.dueSources)) w) d
        GROUP BY d.source
        """, [.text(head.xmax), .text(head.xip)]
      ),
      (Self.changedFiles(sources: "$1::int[]"), [.integerArray(sources)]),
      (
        """
        SELECT 'q', q.id, q.backfilled_to FROM sluice.queries q
        JOIN sluice.definitions d ON d.id = q.definition
        WHERE d.state = 'building' AND NOT q.is_complete
        UNION ALL
        SELECT 'l', l.id, l.backfilled_to FROM sluice.lookups l
        JOIN sluice.definitions d ON d.id = l.definition
        WHERE d.state = 'building' AND NOT l.is_complete
        """, []
      ),
    ]
  }

  /// The sources whose files, as the snapshot sees them, are not those of the last tick.
  private static func changedFiles(sources: String) -> String {
    """
    WITH RECURSIVE tree(source, relation) AS (
      SELECT s.id, c.oid FROM sluice.sources s
      JOIN pg_namespace n ON n.nspname = s.schema::name
      JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = s.name::name
      WHERE s.id = ANY (\(sources))
      UNION ALL
      SELECT t.source, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.relation
      WHERE NOT i.inhdetachpending),
    seen AS (
      SELECT t.source, string_agg(c.oid || '=' || c.relfilenode, ',' ORDER BY c.oid) AS files
      FROM tree t JOIN pg_class c ON c.oid = t.relation GROUP BY t.source)
    SELECT s.id, coalesce(f.files, '') FROM sluice.sources s LEFT JOIN seen f ON f.source = s.id
    WHERE s.id = ANY (\(sources)) AND s.files <> coalesce(f.files, '')
    """
  }

  private func findings(
    session: PostgresResult, dirty: PostgresResult, files: PostgresResult,
    progress: PostgresResult
  ) -> TickFindings {
    var findings = TickFindings()
    let place = TickHead.Place(
      systemIdentifier: session.firstString(1) ?? "", timeline: session.firstString(2) ?? "",
      database: session.firstString(3) ?? "")
    findings.hasMoved = place != head.place
    for row in 0..<dirty.rowCount {
      guard let source = dirty.int(row, 0) else { continue }
      findings.captured.insert(source)
      if dirty.bool(row, 1) == true { findings.whole.insert(source) }
    }
    for row in 0..<files.rowCount {
      guard let source = files.int(row, 0), let seen = files.string(row, 1) else { continue }
      findings.files[source] = seen
      findings.whole.insert(source)
    }
    findings.whole.formUnion(wanted)
    findings.resuming = resuming
    if findings.hasMoved { findings.whole = Set(rules.sources.map(\.id)) }
    if let building = rules.building {
      findings.page = page(of: building, progress)
      findings.activates =
        progress.rowCount == 0
        && building.definitions.allSatisfy { $0.isActive || !standsStill($0.id) }
    }
    return findings
  }

  private func standsStill(_ definition: Int64) -> Bool {
    suspended[definition] != nil && !resuming.contains(definition)
  }

  /// The first incomplete query or lookup, in the order of the rules.
  private func page(of building: StoredGeneration, _ progress: PostgresResult) -> BackfillPage? {
    var queries: [Int64: String?] = [:]
    var lookups: [Int64: String?] = [:]
    for row in 0..<progress.rowCount {
      guard let id = progress.int(row, 1) else { continue }
      if progress.string(row, 0) == "q" {
        queries.updateValue(progress.string(row, 2), forKey: id)
      } else {
        lookups.updateValue(progress.string(row, 2), forKey: id)
      }
    }
    for definition in building.definitions where !standsStill(definition.id) {
      for lookup in definition.lookups {
        if let after = lookups[lookup.id] {
          return BackfillPage(target: .lookup(lookup), after: after)
        }
      }
      for query in definition.queries {
        if let after = queries[query.id] {
          return BackfillPage(target: .query(query), after: after)
        }
      }
    }
    return nil
  }

  // MARK: Writing

  private mutating func write(
    _ findings: TickFindings, stamp: String, since start: ContinuousClock.Instant
  ) async throws -> TickReport {
    let plan = TickPlan(
      rules: rules, head: head, stamp: stamp, findings: findings, backfillLimit: backfillLimit,
      suspended: suspended.filter { !resuming.contains($0.key) })
    let (opening, changes, closing) = (plan.opening, plan.changes, plan.closing)
    let backfill = plan.backfill.map { [$0] } ?? []
    let parts = changes + backfill
    let results: [PostgresResult]
    do {
      results = try await connection.pipeline(opening + parts.map(\.statement) + closing)
    } catch let error as PostgresError {
      guard let place = error.statement.map({ $0 - opening.count }), parts.indices.contains(place)
      else { throw error }
      throw EvaluationFailure(part: parts[place].part, error: error)
    }

    let changed = results[opening.count..<(opening.count + changes.count)]
    let row = opening.count + changes.count + backfill.count
    guard let next = TickHead(results[row]) else {
      throw StorageError(.notInstalled, "a tick left no row")
    }
    head = next
    wanted.removeAll()
    suspended = plan.suspended
    resuming.removeAll()
    return TickReport(
      tick: next.tick, changes: changed.reduce(0) { $0 + ($1.firstInt(0) ?? 0) },
      rowsBackfilled: backfill.isEmpty ? 0 : results[row - 1].firstInt(2) ?? 0,
      isBackfilling: findings.page != nil, hasActivated: findings.activates,
      hasMoved: findings.hasMoved, resumed: findings.resuming, duration: ContinuousClock.now - start
    )
  }
}

/// What a committed tick did.
package struct TickReport: Sendable {
  package let tick: Tick
  /// Entries and lookup rows written, backfills left out.
  package let changes: Int64
  package let rowsBackfilled: Int64
  package let isBackfilling: Bool
  package let hasActivated: Bool
  package let hasMoved: Bool
  /// Definitions that stood still until this tick.
  package let resumed: Set<Int64>
  package let duration: Duration
}
