import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import Synchronization
import TestSupport
import Testing

/// Rules that come into force, beside and after others.
@Suite struct DeploymentTests {
  private static func definition(_ name: String, _ data: String, hash: String) -> CompiledDefinition
  {
    TestRules.definition(
      name, table: TestRules.todos, bucket: "'[' || s.list_id || ']'", data: data, hash: hash)
  }

  private static let kept = definition("kept", "json_build_object('t', s.title)::text", hash: "k1")
  private static let old = definition("other", "json_build_object('t', s.title)::text", hash: "o1")
  private static let new = definition(
    "other", "json_build_object('u', upper(s.title))::text", hash: "o2")
  private static let gone = definition("gone", "'{}'", hash: "g1")

  private func buckets(_ stage: Stage) async throws -> [String: GrantedBucket] {
    let state = try await stage.store.checkpoint(for: RequestContext(claimsJSON: #"{"list":1}"#))
    return Dictionary(uniqueKeysWithValues: state.buckets.map { ($0.name, $0) })
  }

  @Test func `what is unchanged keeps its bucket, what changed starts over, what is gone goes`()
    async throws
  {
    try await withStage(
      Stage.todos + "; INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 50) i",
      TestRules.rules([Self.kept, Self.old, Self.gone])
    ) { stage in
      let before = try await buckets(stage)
      let next = TestRules.rules([Self.kept, Self.new])
      let plan = try await stage.deployer.plan(next)
      #expect(plan.definitions.map(\.name) == ["kept", "other", "gone"])
      #expect(plan.definitions.map(\.change) == [.unchanged, .changed, .removed])
      #expect(plan.definitions.map(\.rows) == [50, 50, 50])
      #expect(plan.tables.map(\.isNew) == [false])
      #expect(!plan.changesNothing)

      let stages = Mutex<[DeploymentProgress.Stage]>([])
      try await stage.deployer.deploy(next, source: "text") { progress in
        stages.withLock { if $0.last != progress.stage { $0.append(progress.stage) } }
      }
      #expect(stages.withLock { $0.last } == .active)
      let after = try await buckets(stage)
      #expect(after.keys.sorted() == ["kept[1]", "other[1]"])
      #expect(after["kept[1]"] == before["kept[1]"])
      #expect(after["other[1]"]?.rowID != before["other[1]"]?.rowID)
      #expect(after["other[1]"]?.count == 50)
      let head = try await stage.store.head().tick
      #expect(after["other[1]"]!.floorID > before["other[1]"]!.lastID)
      #expect(after["other[1]"]!.floorID <= head.boundaryID)
      try await stage.expectSound()
      // A page of a bucket that is no longer in force is below its floor.
      let page = try await stage.store.page(
        bucket: before["gone[1]"]!.rowID!, after: 0, through: head.boundaryID)
      #expect(page.bucket.floorID >= head.boundaryID)
      // What was retired is thrown away in time.
      try await stage.sequencing {
        try await stage.until {
          let left = try await stage.app.query("SELECT count(*) FROM sluice.definitions")
          return left.int(0, 0) == 2
        }
      }
      let entries = try await stage.app.query("SELECT count(*) FROM sluice.entries")
      #expect(entries.int(0, 0) == 100)
    }
  }

  @Test func `tables that were never analysed are counted or judged by their size`() async throws {
    try await withStage(
      "CREATE TABLE todos (id int PRIMARY KEY, list_id int, title text) WITH (autovacuum_enabled = false); "
        + "CREATE TABLE parts (id int PRIMARY KEY, list_id int) PARTITION BY RANGE (id); "
        + "CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (MAXVALUE) WITH (autovacuum_enabled = false); "
        + "INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 3) i; "
        + "INSERT INTO parts SELECT i, 1 FROM generate_series(1, 40000) i", nil
    ) { stage in
      let parts = TestRules.table("parts", key: [TestRules.column("id", "int4")])
      let rules = TestRules.rules([
        Self.kept,
        TestRules.definition(
          "parts", table: parts, bucket: "'[]'", data: "'{}'", columns: ["id"]),
      ])
      let plan = try await stage.deployer.plan(rules)
      #expect(plan.definitions[0].rowsToRead == 3)
      // PostgreSQL guesses the rows from the pages; it knows how wide integers are.
      #expect((20_000...80_000).contains(plan.definitions[1].rowsToRead))
      let toRead = Mutex<[Int64]>([])
      try await stage.deployer.deploy(rules, source: "") { progress in
        if progress.stage == .building { toRead.withLock { $0.append(progress.rowsToRead) } }
      }
      #expect(toRead.withLock { $0.allSatisfy { $0 >= 20_000 } })
      let statistics = try await stage.app.query(
        "SELECT max(reltuples) FROM pg_class WHERE relname IN ('todos', 'parts', 'part')")
      #expect(statistics.string(0, 0) == "-1")
    }
  }

  @Test func `the same rules again change nothing`() async throws {
    try await withStage { stage in
      let before = try await stage.store.checkpoint(for: RequestContext(claimsJSON: #"{"list":1}"#))
      #expect(try await stage.deployer.plan(TestRules.byList).changesNothing)
      try await stage.deploy(TestRules.byList)
      let after = try await stage.store.checkpoint(for: RequestContext(claimsJSON: #"{"list":1}"#))
      #expect(after.buckets == before.buckets)
      #expect(after.generation > before.generation)
    }
  }

  @Test func `writes go on while definitions are built`() async throws {
    try await withStage(
      Stage.todos + "; INSERT INTO todos SELECT i, i % 3, 't' FROM generate_series(1, 500) i",
      TestRules.rules([Self.kept])
    ) { stage in
      let writer = try await stage.connect()
      async let writing: Void = {
        for number in 0..<40 {
          try await writer.execute(
            "UPDATE todos SET title = 'w\(number)', list_id = (list_id + 1) % 3 WHERE id % 40 = \(number); "
              + "DELETE FROM todos WHERE id = \(number * 10 + 1); "
              + "UPDATE todos SET id = -id WHERE id = \(500 - number * 10); INSERT INTO todos VALUES (\(3000 + number), 1, 'n')"
          )
        }
      }()
      try await stage.deploy(TestRules.rules([Self.kept, Self.new, Self.gone]))
      try await writing
      try await stage.sequencing { try await stage.settle() }
      try await stage.expectSound()
      let counts = try await buckets(stage).mapValues(\.count)
      #expect(Set(counts.values).count == 1)
      await writer.close()
    }
  }

  @Test func `a deployment takes the place of one that is still being built`() async throws {
    try await withStage(
      Stage.todos + "; INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 100) i",
      TestRules.rules([Self.kept])
    ) { stage in
      _ = try await stage.deployer.register(TestRules.rules([Self.kept, Self.old]), source: "")
      try await stage.deploy(TestRules.rules([Self.kept, Self.new]))
      let names = try await buckets(stage)
      #expect(names["other[1]"]?.count == 100)
      try await stage.expectSound()
    }
  }

  @Test func `a corruption made by hand is found`() async throws {
    try await withStage(
      Stage.todos + "; INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 20) i"
    ) { stage in
      try await stage.expectSound()
      try await stage.app.execute(
        "UPDATE sluice.entries SET data = '{}' WHERE object_id = '3'; DELETE FROM sluice.entries WHERE object_id = '4'; "
          + "UPDATE sluice.entries SET object_id = 'x' WHERE object_id = '5'; "
          + "UPDATE sluice.entries SET checksum = 1 WHERE object_id = '6'")
      let connection = try await stage.database.connect(settings: Verifier.settings)
      let report = try await Verifier().verify(connection)
      await connection.close()
      #expect(!report.isSound)
      let found = Set(report.differences.map { "\($0.kind.rawValue) \($0.object)" })
      #expect(found == ["different 3", "missing 4", "missing 5", "extra x", "checksum 6", "head "])
    }
  }

  @Test func `tombstones past their time go, and raise the floor`() async throws {
    var options = SequencerOptions.quick
    options.tombstoneRetention = .zero
    options.tickRetention = .zero
    options.ticksKept = 3
    try await withStage(options: options) { stage in
      try await stage.sequencing {
        try await stage.app.execute(
          "INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 30) i")
        try await stage.settle()
        let before = try await buckets(stage)["by_list[1]"]!
        let tick = try await stage.store.head().tick.number
        try await stage.app.execute("DELETE FROM todos WHERE id <= 10")
        try await stage.until {
          let left = try await stage.app.query(
            "SELECT count(*) = 20 AND count(data) = 20 FROM sluice.entries")
          return left.bool(0, 0) == true
        }
        let after = try await buckets(stage)["by_list[1]"]!
        #expect(after.count == 20)
        #expect(after.floorID > before.lastID)
        #expect(after.floorID <= after.lastID)
        for id in 100..<110 {
          try await stage.app.execute("INSERT INTO todos VALUES (\(id), 1, 't')")
          try await stage.settle()
        }
        try await stage.until { try await stage.store.changes(since: tick) == nil }
        let head = try await stage.store.head().tick.number
        let changes = try await stage.store.changes(since: head)
        #expect(changes?.buckets.isEmpty == true)
        try await stage.expectSound()
      }
    }
  }

  @Test func `the inbox is emptied once its slot has passed`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        try await stage.app.execute(
          "INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 30) i")
        // Forty-one hundred transaction ids later another slot is in turn.
        try await stage.app.execute(
          "DO $$ BEGIN FOR i IN 1..4200 LOOP BEGIN PERFORM pg_current_xact_id(); INSERT INTO public.todos VALUES (i + 1000, 2, 'x'); "
            + "EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$")
        try await stage.app.execute("INSERT INTO todos VALUES (31, 1, 't')")
        try await stage.until {
          let left = try await stage.app.query("SELECT count(*) FROM sluice.inbox")
          return left.int(0, 0)! <= 2
        }
        try await stage.expectSound()
      }
    }
  }

  @Test func `the gateway needs no superuser, and the application no right on the schema`()
    async throws
  {
    try await withStage(Stage.todos) { stage in
      try await stage.app.execute(
        "DROP ROLE IF EXISTS clerk; DROP ROLE IF EXISTS gate; CREATE ROLE clerk; CREATE ROLE gate LOGIN; "
          + "GRANT USAGE ON SCHEMA public TO clerk, gate; GRANT ALL ON todos TO clerk; GRANT SELECT ON todos TO gate; "
          + Installer().grants(to: "gate"))
      let configuration = PostgresConfiguration(
        connectionString: stage.database.connectionString + "&user=gate")
      let sequencer = Sequencer(
        configuration: configuration, loop: TestDatabase.loop, options: .quick)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await sequencer.run() }
        try await stage.app.execute(
          "SET ROLE clerk; INSERT INTO todos VALUES (1, 1, 'a'), (2, 1, 'b'); UPDATE todos SET id = 3 WHERE id = 2; "
            + "DELETE FROM todos WHERE id = 1; RESET ROLE")
        try await stage.settle()
        let rows = try await stage.rows("1")
        #expect(rows.keys.sorted() == ["3"])
        try await stage.app.execute("ALTER TABLE todos ALTER list_id TYPE bigint")
        try await stage.app.execute("SET ROLE clerk; TRUNCATE todos; RESET ROLE")
        try await stage.until { try await stage.rows("1").isEmpty }
        let user = try await stage.app.query(
          "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gate' AND datname = current_database()"
        )
        #expect(user.int(0, 0)! > 0)
        group.cancelAll()
      }
      try await stage.app.execute("DROP OWNED BY clerk, gate; DROP ROLE clerk, gate")
    }
  }
}
