import BucketStorage
import EventLoop
import Postgres
import SQLGeneration
import ServiceRuntime
import SyncRules
import TestSupport
import Testing

/// A database with Sluice installed, an application's connection, and readers; ticks run when asked.
final class Stage: Sendable {
  let database: TestDatabase
  let app: PostgresConnection
  let store: BucketStore
  let pool: PostgresPool
  let options: SequencerOptions

  /// The role of the tests is called like the schema, where its tables would go otherwise.
  private static let settings = ["search_path": "public"]

  static let todos = "CREATE TABLE todos (id int PRIMARY KEY, list_id int, title text)"

  init(_ database: TestDatabase, options: SequencerOptions) async throws {
    self.database = database
    self.options = options
    app = try await database.connect(settings: Self.settings)
    pool = PostgresPool(
      configuration: database.configuration(settings: BucketStore.settings),
      loop: TestDatabase.loop, size: 4)
    store = BucketStore(pool: pool)
  }

  func close() async {
    await app.close()
    await pool.close()
  }

  func connect() async throws -> PostgresConnection {
    try await database.connect(settings: Self.settings)
  }

  var deployer: Deployer {
    Deployer(
      configuration: database.configuration(), loop: TestDatabase.loop, options: options)
  }

  /// The rules of a file, compiled for the tables as they are.
  func compile(_ yaml: String) async throws -> CompiledRules {
    let catalog = try await CatalogReader().read(app)
    let (rules, problems) = RulesReader.read(yaml, fileName: "rules.yaml")
    #expect(problems.isEmpty)
    let (plan, diagnostics) = PlanCompiler.compile(try #require(rules), catalog)
    #expect(diagnostics.filter { $0.severity == .error }.isEmpty)
    return SQLGenerator.compile(try #require(plan))
  }

  func deploy(_ rules: CompiledRules) async throws {
    try await deployer.deploy(rules, source: "")
  }

  /// Runs a sequencer around `body`.
  func sequencing<R: Sendable>(
    observer: any Observer = NoObserver(), metrics: Metrics = Metrics(),
    settings: [String: String] = [:],
    _ body: @escaping @Sendable () async throws -> R
  ) async throws -> R {
    let sequencer = Sequencer(
      configuration: database.configuration(settings: settings), loop: TestDatabase.loop,
      options: options, observer: observer, metrics: metrics)
    return try await withThrowingTaskGroup(of: R?.self) { group in
      group.addTask {
        try await sequencer.run()
        return nil
      }
      group.addTask { try await body() }
      while let result = try await group.next() {
        if let result {
          group.cancelAll()
          return result
        }
      }
      throw CancellationError()
    }
  }

  /// Waits until a tick has seen everything that is committed now.
  func settle() async throws {
    for _ in 0..<2_000 {
      let result = try await app.query(
        """
        SELECT NOT EXISTS (SELECT FROM sluice.inbox i, (
          SELECT snapshot FROM sluice.ticks ORDER BY number DESC LIMIT 1) t
          WHERE NOT pg_visible_in_snapshot(i.xid, t.snapshot))
        """)
      if result.bool(0, 0) == true { return }
      try await Task.sleep(for: .milliseconds(5))
    }
    Issue.record("the sequencer did not keep up")
  }

  /// The live rows of a bucket as `object: data`, read in pages like a client reads them.
  func rows(
    _ list: String, definition: String? = nil, pageSize: Int = 1_000
  ) async throws -> [String: String] {
    let state = try await store.checkpoint(for: RequestContext(claimsJSON: "{\"list\":\(list)}"))
    let granted = state.buckets.first { definition == nil || $0.definition == definition }
    guard let bucket = granted?.rowID else { return [:] }
    var rows: [String: String] = [:]
    var after: Int64 = 0
    while true {
      let page = try await store.page(
        bucket: bucket, after: after, through: state.tick.boundaryID, limit: pageSize)
      for row in page.rows {
        let object = page.result.string(row, 1)!
        rows[object] = page.result.string(row, 5)
      }
      guard page.hasMore, let last = page.lastEntryID else { return rows }
      after = last
    }
  }
}

/// Lends a stage with these tables and rules in force.
func withStage<R: Sendable>(
  _ tables: String = Stage.todos, _ rules: CompiledRules? = TestRules.byList,
  options: SequencerOptions = .quick, _ body: (Stage) async throws -> R
) async throws -> R {
  try await withDatabase { database in
    let stage = try await Stage(database, options: options)
    do {
      try await stage.app.execute(tables)
      _ = try await Installer().install(stage.app)
      if let rules { try await stage.deploy(rules) }
      let result = try await body(stage)
      await stage.close()
      return result
    } catch {
      await stage.close()
      throw error
    }
  }
}

extension SequencerOptions {
  static var quick: SequencerOptions {
    var options = SequencerOptions()
    options.busyPeriod = .milliseconds(1)
    options.idlePeriod = .milliseconds(5)
    options.filesPeriod = .milliseconds(20)
    options.housekeepingPeriod = .milliseconds(200)
    options.leadershipPeriod = .milliseconds(20)
    options.backfillLimit = 7
    return options
  }
}

extension Stage {
  /// Compares everything that is stored with the rules.
  func expectSound(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let connection = try await database.connect(settings: Verifier.settings)
    let report = try await Verifier().verify(connection)
    await connection.close()
    #expect(report.differences.isEmpty, sourceLocation: sourceLocation)
  }
}

extension Stage {
  /// Waits until `condition` holds, for ten seconds at most.
  func until(
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
  ) async throws {
    for _ in 0..<1_000 {
      if try await condition() { return }
      try await Task.sleep(for: .milliseconds(10))
    }
    Issue.record("what was waited for did not come", sourceLocation: sourceLocation)
  }
}
