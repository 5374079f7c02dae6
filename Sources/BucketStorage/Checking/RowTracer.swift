package import Postgres
package import SQLGeneration
package import SyncRules

/// Tells why a source row is in the buckets it is in, and who may hold these.
///
/// It asks the source tables and the stored rows in one snapshot, so that a row which changed since the last
/// tick is seen as changed. It writes nothing.
package struct RowTracer: Sendable {
  /// The settings that its connection must have.
  package static let settings: [String: String] = Verifier.settings

  private let plan: SyncPlan
  private let rules: CompiledRules
  /// Ways listed for each thing that is listed.
  private let limit = 20

  /// `rules` is `plan` compiled; both of the rules in force.
  package init(plan: SyncPlan, rules: CompiledRules) {
    self.plan = plan
    self.rules = rules
  }

  /// What becomes of the row of the plan's source `table` whose key columns have these texts.
  ///
  /// - Parameter request: who asks; nil asks for whoever may hold the row.
  /// - Throws: `PostgresError` of class 22 when `key` is none of the table's, `StorageError` when the rules in
  ///   force are not these.
  package func trace(
    table: Int, key: [String], for request: RequestContext?, _ connection: PostgresConnection
  ) async throws -> RowReport {
    let stored = try await StoredRules.load(connection)
    guard let active = stored.active else { throw Self.outdated }
    return try await connection.transaction(isolation: .repeatableRead, readOnly: true) {
      guard let head = TickHead(try await connection.query(TickHead.select)) else {
        throw StorageError(.notInstalled, "the database has no first tick")
      }
      let source = rules.tables[table]
      let keyText = try await text(of: key, connection)
      let found = try await connection.query(
        "SELECT FROM \(SQLIdentifier(schema: source.schema, name: source.name)) s "
          + "WHERE \(source.key.matches(alias: "s", keyText: "$1::text"))", [.text(keyText)])
      var report = RowReport(
        table: "\(source.schema).\(source.name)", key: key.joined(separator: ","), tick: head.tick,
        exists: found.rowCount > 0)
      for (planned, compiled) in zip(plan.definitions, rules.definitions)
      where planned.queries.contains(where: { $0.source == table }) {
        let definition = active.definitions.first {
          $0.compiled.name == compiled.name && $0.compiled.contentHash == compiled.contentHash
        }
        guard let definition else { throw Self.outdated }
        let trace = DefinitionTrace(
          plan: plan, planned: planned, definition: definition, keyText: keyText, limit: limit,
          connection: connection)
        report.ways += try await trace.ways(table: table, for: request)
        if try await trace.isPending(head) { report.isPending = true }
      }
      return report
    }
  }

  private func text(of key: [String], _ connection: PostgresConnection) async throws -> String {
    guard key.count > 1 else { return key.first ?? "" }
    let result = try await connection.query("SELECT $1::text[]::text", [.textArray(key)])
    return result.firstString(0) ?? ""
  }

  private static let outdated = StorageError(
    .rulesUnreadable, "the rules in force do not fit the tables any more",
    hint: "Run `sluice check` and `sluice deploy`, then ask again.")
}

/// The questions about one definition.
private struct DefinitionTrace {
  let plan: SyncPlan
  let planned: PlanDefinition
  let definition: StoredDefinition
  let keyText: String
  let limit: Int
  let connection: PostgresConnection

  /// Whether the row was changed and no tick has seen it yet.
  func isPending(_ head: TickHead) async throws -> Bool {
    for query in definition.queries {
      let result = try await connection.query(
        """
        SELECT EXISTS (SELECT FROM (\(CapturedKeys.sql(source: query.source.id))) p
          WHERE p.key = $2::text)
        """, [.null, .text(keyText), .text(head.xmax), .text(head.xip)])
      if result.firstBool(0) == true { return true }
    }
    return false
  }

  func ways(table: Int, for request: RequestContext?) async throws -> [RowReport.Way] {
    var access: GrantedAccess?
    if let request { access = try await granted(request) }
    var ways: [RowReport.Way] = []
    for (query, stored) in zip(planned.queries, definition.queries) where query.source == table {
      var way = RowReport.Way(
        definition: planned.name, stream: planned.stream?.name, query: stored.compiled.ordinal + 1,
        output: query.outputName)
      try await evaluate(query, stored, into: &way)
      for index in way.buckets.indices {
        way.buckets[index].access = access?.access(to: way.buckets[index].key)
        guard way.buckets[index].access?.isGranted != true else { continue }
        way.buckets[index].holders = try await holders(of: way.buckets[index].key)
      }
      ways.append(way)
    }
    return ways
  }

  // MARK: The row

  private func evaluate(
    _ query: PlanQuery, _ stored: StoredQuery, into way: inout RowReport.Way
  ) async throws {
    let held = try await connection.query(
      """
      SELECT b.key, e.object_id FROM sluice.entries e JOIN sluice.buckets b ON b.id = e.bucket
      WHERE e.query = \(stored.id) AND e.source_key = $1::text AND e.data IS NOT NULL
        AND hashtextextended(e.source_key, e.query) = hashtextextended($1::text, \(stored.id)::bigint)
      ORDER BY 1
      """, [.text(keyText)])
    let keys = (0..<held.rowCount).compactMap { held.string($0, 0) }
    var given: [String] = []
    for branch in RowTrace.branches(of: query, key: stored.compiled.source.key, in: plan) {
      let result = try await connection.query(branch.sql, [.text(keyText)])
      let found = (0..<result.rowCount).compactMap { result.string($0, 0) }
      for key in found where !given.contains(key) { given.append(key) }
      if found.isEmpty, result.rowCount > 0 {
        way.failures.append(failures(branch, result))
      }
    }
    let all = given + keys.filter { !given.contains($0) }
    way.buckets = all.map { key in
      RowReport.Bucket(
        name: planned.name + key, key: key, isGiven: given.contains(key),
        isStored: keys.contains(key))
    }
  }

  /// What does not hold for that of the row's combinations which comes farthest.
  private func failures(_ branch: RowTrace, _ result: PostgresResult) -> [RowReport.Failure] {
    let failed = (0..<result.rowCount).map { row in
      branch.conditions.indices.filter { result.bool(row, 1 + $0) != true }
    }
    guard let least = failed.indices.min(by: { failed[$0].count < failed[$1].count }) else {
      return []
    }
    return failed[least].map { index in
      let condition = branch.conditions[index]
      let values = condition.columns.compactMap { name -> RowReport.Value? in
        guard let place = branch.columns.firstIndex(of: name) else { return nil }
        let column = 1 + branch.conditions.count + place
        return RowReport.Value(name: name, json: result.string(least, column) ?? "null")
      }
      return RowReport.Failure(condition: condition.text, values: values)
    }
  }

  // MARK: The request

  private func number(_ ordinal: Int) -> Int64 {
    definition.lookups.first { $0.compiled.ordinal == ordinal }?.id ?? 0
  }

  private func granted(_ request: RequestContext) async throws -> GrantedAccess {
    var access = GrantedAccess(definition: planned)
    for (ordinal, grant) in planned.grants.enumerated() {
      let trace = GrantTrace(grant, ordinal: ordinal, of: planned, in: plan)
      let result = try await connection.query(
        """
        WITH r AS (SELECT $1::text AS claims, $2::text AS parameters, $3::text AS subscriptions,
          $4::boolean AS include_defaults)
        SELECT * FROM (\(trace.statement.sql(number: number))) x LIMIT 10000
        """,
        [
          .text(request.claimsJSON), .text(request.parametersJSON),
          .text(request.subscriptionsJSON), .boolean(request.includeDefaults),
        ])
      access.add(trace, result)
    }
    return access
  }

  private func holders(of key: String) async throws -> [RowReport.Holders] {
    var holders: [RowReport.Holders] = []
    for (ordinal, grant) in planned.grants.enumerated() {
      let trace = HolderTrace(grant, ordinal: ordinal)
      let result = try await connection.query(
        """
        WITH b AS (SELECT $1::json AS key)
        SELECT * FROM (\(trace.statement.sql(number: number))) x LIMIT \(limit + 1)
        """, [.text(key)])
      guard result.rowCount > 0 else { continue }
      let requests = (0..<min(result.rowCount, limit)).map { row in
        trace.requirements.enumerated().map { column, name in
          RowReport.Value(name: name, json: result.string(row, column) ?? "null")
        }
      }
      holders.append(
        RowReport.Holders(
          requests: requests, conditions: trace.conditions, hasMore: result.rowCount > limit))
    }
    return holders
  }
}

/// What a request reaches in a definition, and where it stops.
private struct GrantedAccess {
  let definition: PlanDefinition
  /// Values listed of those that lead elsewhere.
  private let limit = 3
  private var grants: [(trace: GrantTrace, result: PostgresResult)] = []

  init(definition: PlanDefinition) {
    self.definition = definition
  }

  mutating func add(_ trace: GrantTrace, _ result: PostgresResult) {
    grants.append((trace, result))
  }

  func access(to key: String) -> RowReport.Access {
    for (trace, result) in grants {
      for row in 0..<result.rowCount
      where result.string(row, 0) == key && holds(trace, result, row) {
        return RowReport.Access(isGranted: true, reasons: path(trace, result, row))
      }
    }
    let reasons = grants.flatMap { trace, result in obstacles(trace, result) }
    return RowReport.Access(
      isGranted: false,
      reasons: reasons.isEmpty ? ["\(definition.name) is granted to nobody"] : reasons)
  }

  private func holds(_ trace: GrantTrace, _ result: PostgresResult, _ row: Int) -> Bool {
    trace.conditions.indices.allSatisfy { result.bool(row, column(of: $0, trace)) == true }
  }

  private func column(of condition: Int, _ trace: GrantTrace) -> Int {
    trace.conditions.prefix(condition).reduce(2) { $0 + 1 + $1.reads.count }
  }

  private func column(ofStep step: Int, _ trace: GrantTrace) -> Int {
    column(of: trace.conditions.count, trace) + 2 * step
  }

  private func path(_ trace: GrantTrace, _ result: PostgresResult, _ row: Int) -> [String] {
    let conditions = trace.conditions.indices.map { index in
      "\(trace.conditions[index].text)\(values(index, trace, result, row))"
    }
    let steps = trace.steps.enumerated().map { place, step in
      let column = column(ofStep: place, trace)
      let key = result.string(row, column) ?? "null"
      guard step.isLookup else { return "\(step.text): \(key)" }
      return "\(step.text): under \(key) stands \(result.string(row, column + 1) ?? "nothing")"
    }
    return conditions + steps
  }

  /// What the condition read.
  private func values(
    _ condition: Int, _ trace: GrantTrace, _ result: PostgresResult, _ row: Int
  ) -> String {
    let column = column(of: condition, trace)
    let texts = trace.conditions[condition].reads.enumerated().map { place, name in
      "\(name) is \(result.string(row, column + 1 + place) ?? "null")"
    }
    return texts.isEmpty ? "" : ", and \(texts.joined(separator: ", "))"
  }

  /// Why none of the grant's ways ends at the bucket.
  private func obstacles(_ trace: GrantTrace, _ result: PostgresResult) -> [String] {
    let rows = Array(0..<result.rowCount)
    guard let first = rows.first else {
      return ["there is no subscription to the stream \(definition.stream?.name ?? "")"]
    }
    let failed = trace.conditions.indices.first { condition in
      rows.allSatisfy { result.bool($0, column(of: condition, trace)) != true }
    }
    if let failed {
      return ["not \(trace.conditions[failed].text)\(values(failed, trace, result, first))"]
    }
    for (place, step) in trace.steps.enumerated() {
      let column = column(ofStep: place, trace)
      let isEmpty = rows.allSatisfy { result.isNull($0, step.isLookup ? column + 1 : column) }
      guard isEmpty else { continue }
      guard step.isLookup else { return ["\(step.text): there are none"] }
      let keys = listed(rows.compactMap { result.string($0, column) })
      return ["\(step.text): nothing stands under \(keys)"]
    }
    let others = rows.filter { holds(trace, result, $0) }.compactMap { result.string($0, 0) }
    if others.isEmpty { return differences(trace, result, rows) }
    return ["it leads elsewhere: \(listed(others))"]
  }

  /// Which values differ that have to be equal, in the ways that come to the end.
  private func differences(
    _ trace: GrantTrace, _ result: PostgresResult, _ rows: [Int]
  ) -> [String] {
    var column = column(ofStep: trace.steps.count, trace)
    for equality in trace.equalities {
      let columns = column..<column + equality.count
      column = columns.upperBound
      let isUnequal = rows.allSatisfy { row in
        Set(columns.map { result.string(row, $0) ?? "null" }).count > 1
      }
      guard isUnequal else { continue }
      return [
        zip(equality, columns).map { name, column in
          "\(name) is \(listed(rows.compactMap { result.string($0, column) }))"
        }.joined(separator: ", but ")
      ]
    }
    return ["it leads to no bucket"]
  }

  /// The first few of the texts, each once.
  private func listed(_ texts: [String]) -> String {
    var known: Set<String> = []
    let different = texts.filter { known.insert($0).inserted }
    guard !different.isEmpty else { return "NULL" }
    let shown = different.prefix(limit).joined(separator: ", ")
    let rest = different.count - limit
    return rest > 0 ? "\(shown) and \(rest) more" : shown
  }
}
