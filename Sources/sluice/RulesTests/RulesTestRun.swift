import BucketStorage
import EventLoop
import Foundation
import Postgres
import SQLGeneration
import ServiceRuntime
import SyncProtocol
import SyncRules

/// Runs a file of tests: the tables and rows in a throw-away database, the rules in force on them, and a
/// sequencer that takes changes as a gateway does.
struct RulesTestRun {
  let tests: RulesTestFile
  let rulesPath: String
  let access: DatabaseAccess
  let console: Console

  /// The outcome of every test, in the file's order.
  func run() async throws -> RulesTestReport {
    try await ThrowAwayDatabase.lend(access) { database in
      let connection = try await PostgresConnection.connect(
        database.configuration(["search_path": "public"]), on: access.loop)
      do {
        let report = try await run(database, connection)
        await connection.close()
        return report
      } catch {
        await connection.close()
        throw error
      }
    }
  }

  private func run(
    _ database: ThrowAwayDatabase, _ connection: PostgresConnection
  ) async throws -> RulesTestReport {
    console.progress("making tables and rows")
    for script in tests.schema { try await execute(script, "schema", connection) }
    for table in tests.tables { try await fill(table, connection) }
    let catalog = try await CatalogReader().read(connection)
    let pipeline = try RulesPipeline.run(path: rulesPath, catalog: catalog)
    console.endProgress()
    let rules = try pipeline.requireCompiled(console)
    console.progress("bringing the rules into force")
    _ = try await Installer().install(connection)
    var options = SequencerOptions()
    options.busyPeriod = .milliseconds(5)
    options.idlePeriod = .milliseconds(10)
    try await Deployer(
      configuration: database.configuration(), loop: access.loop, options: options
    ).deploy(rules, source: pipeline.file.text)
    console.endProgress()
    let pool = PostgresPool(
      configuration: database.configuration(BucketStore.settings), loop: access.loop, size: 1)
    let store = BucketStore(pool: pool)
    var report = RulesTestReport(file: tests.file.name)
    for test in tests.tests {
      if let change = test.change {
        try await execute(change, "the change of \"\(test.name)\"", connection)
        try await tick(database, connection, options)
      }
      report.outcomes.append(
        RulesTestReport.Outcome(
          name: test.name, line: test.line, problems: try await problems(test, store, rules.schema))
      )
    }
    await pool.close()
    return report
  }

  // MARK: The source

  private func execute(
    _ sql: String, _ what: String, _ connection: PostgresConnection
  ) async throws {
    do {
      try await connection.execute(sql)
    } catch let error as PostgresError where error.kind == .server {
      throw CommandFailure(
        .failed, "\(tests.file.name): \(what): \(error.message)", hint: error.hint)
    }
  }

  private func fill(
    _ table: RulesTestFile.SourceTable, _ connection: PostgresConnection
  ) async throws {
    let parts = table.name.split(separator: ".", maxSplits: 1).map(String.init)
    let name = parts.map { SQLIdentifier($0).description }.joined(separator: ".")
    for row in table.rows {
      do {
        // Only the columns that are given, so that the others get their defaults.
        let columns = try await connection.query(
          "SELECT string_agg(quote_ident(k), ', ') FROM json_object_keys($1::json) k",
          [.text(row.json)])
        let list = columns.string(0, 0) ?? ""
        _ = try await connection.query(
          "INSERT INTO \(name) (\(list)) OVERRIDING SYSTEM VALUE SELECT \(list) "
            + "FROM json_populate_record(NULL::\(name), $1::json)", [.text(row.json)])
      } catch let error as PostgresError where error.kind == .server {
        throw CommandFailure(
          .failed, "\(tests.file.name):\(row.line): a row of \(table.name): \(error.message)",
          hint: error.detail)
      }
    }
  }

  /// Runs a sequencer until what is committed has been taken.
  private func tick(
    _ database: ThrowAwayDatabase, _ connection: PostgresConnection, _ options: SequencerOptions
  ) async throws {
    let sequencer = Sequencer(
      configuration: database.configuration(), loop: access.loop, options: options)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await sequencer.run() }
      defer { group.cancelAll() }
      for _ in 0..<3_000 {
        if try await !StatusReader().read(connection).hasPendingChanges { return }
        try await Task.sleep(for: .milliseconds(10))
      }
      throw CommandFailure(.failed, "no tick took the change within 30 s")
    }
  }

  // MARK: The user

  private func problems(
    _ test: RulesTestFile.Test, _ store: BucketStore, _ schema: [SQLGeneration.PublishedTable]
  ) async throws -> [RulesTestReport.Problem] {
    let state = try await store.checkpoint(
      for: RequestContext(
        claimsJSON: try json(test.claims), parametersJSON: try json(test.parameters),
        subscriptionsJSON: StreamSubscription.json(test.subscriptions),
        includeDefaults: test.includeDefaults))
    var problems = state.faults.map { fault in
      RulesTestReport.Problem(line: test.line, text: "stream \(fault.stream): \(fault.message)")
    }
    if let expected = test.buckets {
      problems += compare(expected, state.buckets.map(\.name), line: test.line)
    }
    guard !test.tables.isEmpty else { return problems }
    let held = try await rows(state, store)
    for table in test.tables {
      problems += misspelt(table.rows, of: table.name, line: table.line, schema)
      problems += compare(table.rows, held[table.name] ?? [:], of: table.name, line: table.line)
    }
    return problems
  }

  private func compare(
    _ expected: [(name: String, line: Int)], _ actual: [String], line: Int
  ) -> [RulesTestReport.Problem] {
    let missing = expected.filter { !actual.contains($0.name) }.map {
      RulesTestReport.Problem(line: $0.line, text: "the bucket \($0.name) is missing")
    }
    let extra = actual.filter { name in !expected.contains { $0.name == name } }.map {
      RulesTestReport.Problem(line: line, text: "the bucket \($0) was not expected")
    }
    return missing + extra
  }

  /// A name that no query gives would be absent whatever the rules say.
  private func misspelt(
    _ rows: [RulesTestFile.Row], of table: String, line: Int,
    _ schema: [SQLGeneration.PublishedTable]
  ) -> [RulesTestReport.Problem] {
    guard let published = schema.first(where: { $0.name == table }) else {
      let guess =
        Suggestion.nearest(to: table, among: schema.map(\.name))
        .map { "; did you mean \($0)?" } ?? ""
      return [.init(line: line, text: "replicas have no table \(table)\(guess)")]
    }
    let columns = published.columns.map(\.name)
    return rows.flatMap { row in
      row.values.keys.sorted().filter { !columns.contains($0) }.map { column in
        let guess = Suggestion.nearest(to: column, among: columns).map { "; did you mean \($0)?" }
        return RulesTestReport.Problem(
          line: row.line, text: "\(table) has no column \(column)\(guess ?? "")")
      }
    }
  }

  private typealias HeldRow = [String: Any]

  private func compare(
    _ expected: [RulesTestFile.Row], _ actual: [String: [HeldRow]], of table: String, line: Int
  ) -> [RulesTestReport.Problem] {
    var problems: [RulesTestReport.Problem] = []
    for row in expected {
      guard let copies = actual[row.id] else {
        problems.append(.init(line: row.line, text: "\(table) \(row.id) is missing"))
        continue
      }
      for (column, value) in row.values.sorted(by: { $0.key < $1.key }) {
        let found = copies.map { RulesTestFile.Value(json: $0[column]) }
        guard !found.contains(value) else { continue }
        let shown = found.map(\.shown).joined(separator: " or ")
        problems.append(
          .init(
            line: row.line, text: "\(table) \(row.id): \(column) is \(shown), not \(value.shown)"))
      }
    }
    let ids = Set(expected.map(\.id))
    for id in actual.keys.sorted() where !ids.contains(id) {
      problems.append(.init(line: line, text: "\(table) \(id) was not expected"))
    }
    return problems
  }

  /// The rows that a replica would have, by table and id; a row of several buckets has several copies.
  private func rows(
    _ state: CheckpointState, _ store: BucketStore
  ) async throws -> [String: [String: [HeldRow]]] {
    var rows: [String: [String: [HeldRow]]] = [:]
    for bucket in state.buckets {
      guard let id = bucket.rowID else { continue }
      var after: Int64 = 0
      while true {
        let page = try await store.page(
          bucket: id, after: after, through: state.tick.boundaryID, limit: 1_000)
        for row in page.rows {
          guard let data = page.result.string(row, 5) else { continue }
          let object = try JSONSerialization.jsonObject(with: Data(data.utf8)) as? HeldRow ?? [:]
          rows[page.result.string(row, 0) ?? "", default: [:]][
            page.result.string(row, 1) ?? "", default: []
          ].append(object)
        }
        guard page.hasMore, let last = page.lastEntryID else { break }
        after = last
      }
    }
    return rows
  }

  private func json(_ object: [String: Any]) throws -> String {
    String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
  }
}
