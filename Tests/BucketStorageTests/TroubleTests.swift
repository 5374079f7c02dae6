import BucketStorage
import Postgres
import ServiceRuntime
import Synchronization
import TestSupport
import Testing

/// Everything that PostgreSQL may refuse a sequencer: it says why, loses nothing, and goes on by itself.
@Suite struct TroubleTests {
  private static let tables = """
    CREATE TABLE todos (id int PRIMARY KEY, list_id int, title text);
    CREATE TABLE notes (id int PRIMARY KEY, list_id int, title text);
    """

  /// Each table's rows by list.
  private static let rules = TestRules.rules(
    ["todos", "notes"].map { name in
      TestRules.definition(
        name, table: TestRules.table(name, key: [TestRules.column("id", "int4")]),
        bucket: "'[' || s.list_id || ']'",
        data: "json_build_object('id', s.id, 'title', s.title)::text")
    })

  /// An error of PostgreSQL's, raised where the sequencer writes.
  private static func raising(_ state: String, on table: String) -> String {
    """
    CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'no row of "secret" for you' USING ERRCODE = '\(state)'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON \(table)
      FOR EACH STATEMENT EXECUTE FUNCTION public.refuse()
    """
  }

  private static let ending = "DROP FUNCTION public.refuse() CASCADE"

  @Test(arguments: [
    ("53100", "sluice.entries", StorageError.Code.diskFull),
    ("53100", "sluice.ticks", .diskFull), ("53200", "sluice.bucket_changes", .resources),
    ("57014", "sluice.entries", .statementTimeout),
  ])
  func `what refuses a tick is told by code, and the tick is made when it is over`(
    state: String, table: String, code: StorageError.Code
  ) async throws {
    try await withStage(Self.tables, Self.rules) { stage in
      let log = ObservationLog()
      let metrics = Metrics()
      try await stage.sequencing(observer: log, metrics: metrics) {
        try await stage.app.execute("INSERT INTO todos VALUES (1, 1, 'a')")
        try await stage.settle()
        try await stage.app.execute(Self.raising(state, on: table))
        try await stage.app.execute(
          "INSERT INTO todos VALUES (2, 1, 'b'); UPDATE todos SET title = 'c' WHERE id = 1; "
            + "INSERT INTO notes VALUES (1, 1, 'd')")
        try await stage.until { log.failures.count >= 2 }
        for failure in log.failures {
          #expect((failure.error as? StorageError)?.code == code)
          let text = String(describing: failure.error ?? CancellationError())
          #expect(text.hasPrefix("\(code.name): "))
          #expect(!text.contains("secret"))
        }
        #expect(
          metrics.text().contains("sluice_sequencer_failures_total{code=\"\(code.name)\"}"))
        let before = try await stage.rows("1", definition: "todos")
        #expect(before == ["1": #"{"id" : 1, "title" : "a"}"#])
        try await stage.app.execute(Self.ending)
        try await stage.settle()
        let (todos, notes) = (
          try await stage.rows("1", definition: "todos"),
          try await stage.rows("1", definition: "notes")
        )
        #expect(
          todos == ["1": #"{"id" : 1, "title" : "c"}"#, "2": #"{"id" : 2, "title" : "b"}"#])
        #expect(notes == ["1": #"{"id" : 1, "title" : "d"}"#])
        #expect(metrics.text().contains("sluice_sequencer_leading 1"))
        try await stage.expectSound()
      }
      #expect(metrics.text().contains("sluice_sequencer_leading 0"))
    }
  }

  @Test func `a deployment that cannot be built says why, and is built when it can be`()
    async throws
  {
    try await withStage(Self.tables, nil) { stage in
      try await stage.app.execute(
        "INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 50) i")
      try await stage.app.execute(Self.raising("53100", on: "sluice.entries"))
      let deployer = Deployer(
        configuration: stage.database.configuration(), loop: TestDatabase.loop,
        options: stage.options, patience: .seconds(1))
      let error = await #expect(throws: StorageError.self) {
        try await deployer.deploy(Self.rules, source: "")
      }
      #expect(error?.code == .diskFull)
      try await stage.app.execute(Self.ending)
      try await stage.sequencing {
        try await stage.until {
          try await StatusReader().read(stage.app).buildingGeneration == nil
        }
        let rows = try await stage.rows("1", definition: "todos")
        #expect(rows.count == 50)
        try await stage.expectSound()
      }
    }
  }

  @Test func `an application's write that cannot be captured is refused whole`() async throws {
    try await withStage(Self.tables, Self.rules) { stage in
      try await stage.sequencing {
        try await stage.app.execute("INSERT INTO todos VALUES (1, 1, 'a')")
        try await stage.settle()
        for slot in 0..<8 {
          try await stage.app.execute(Self.raising("53100", on: "sluice.inbox_\(slot)"))
        }
        let error = await #expect(throws: PostgresError.self) {
          try await stage.app.execute(
            "BEGIN; INSERT INTO todos VALUES (2, 1, 'b'); DELETE FROM todos WHERE id = 1; COMMIT")
        }
        #expect(error?.code == "53100")
        try await stage.app.execute("ROLLBACK; " + Self.ending)
        try await stage.app.execute("INSERT INTO todos VALUES (3, 1, 'c')")
        try await stage.settle()
        let rows = try await stage.rows("1", definition: "todos")
        #expect(rows.keys.sorted() == ["1", "3"])
        try await stage.expectSound()
      }
    }
  }

  @Test func `a locked table holds up the definitions that read it, and no others`() async throws {
    try await withStage(Self.tables, Self.rules) { stage in
      try await stage.app.execute("INSERT INTO todos VALUES (1, 1, 'a')")
      let locker = try await stage.connect()
      try await locker.execute("BEGIN; LOCK TABLE todos IN ACCESS EXCLUSIVE MODE")
      let log = ObservationLog()
      try await stage.sequencing(observer: log) {
        try await stage.app.execute("INSERT INTO notes VALUES (1, 1, 'b')")
        try await stage.until { try await stage.rows("1", definition: "notes").count == 1 }
        let status = try await StatusReader().read(stage.app)
        let problem = status.definitions.first { $0.name == "todos" }?.suspended
        #expect(problem?.contains("public.todos is locked by another session") == true)
        #expect(problem?.contains("SLUICE_LOCK_TIMEOUT") == true)
        // Nothing is tried as long as the lock is held, so nobody waits again.
        for number in 2...20 {
          let start = ContinuousClock.now
          try await stage.app.execute("INSERT INTO notes VALUES (\(number), 1, 'b')")
          try await stage.settle()
          #expect(ContinuousClock.now - start < .seconds(1.5))
          try await Task.sleep(for: .milliseconds(100))
        }
        #expect(log.failures.isEmpty)
        try await locker.execute("INSERT INTO todos VALUES (2, 1, 'c'); COMMIT")
        try await stage.until { try await stage.rows("1", definition: "todos").count == 2 }
        let after = try await StatusReader().read(stage.app).definitions
        #expect(after.allSatisfy { $0.suspended == nil })
        try await stage.expectSound()
      }
      await locker.close()
    }
  }

  @Test func `a time limit of the database's or the role's does not stop ticks`() async throws {
    try await withStage(Self.tables, nil) { stage in
      let name = stage.database.name
      try await stage.app.execute(
        "INSERT INTO todos SELECT i, 1, repeat('x', 100) FROM generate_series(1, 20000) i; "
          + "ALTER DATABASE \(name) SET statement_timeout = '30ms'")
      var options = SequencerOptions.quick
      options.backfillLimit = 20_000
      try await Deployer(
        configuration: stage.database.configuration(), loop: TestDatabase.loop, options: options,
        patience: .seconds(5)
      ).deploy(Self.rules, source: "")
      try await stage.sequencing {
        try await stage.app.execute("UPDATE todos SET title = 'y'")
        try await stage.settle()
      }
      try await stage.app.execute("ALTER DATABASE \(name) RESET statement_timeout")
      try await stage.expectSound()
    }
  }

  @Test func `a right on Sluice's own tables that is missing is no definition's fault`()
    async throws
  {
    try await withStage(Self.tables, Self.rules) { stage in
      let role = "writer_\(UInt32.random(in: 0 ... .max))"
      try await stage.app.execute(
        "CREATE ROLE \(role); GRANT SELECT ON ALL TABLES IN SCHEMA public TO \(role); "
          + Installer().grants(to: role))
      let log = ObservationLog()
      do {
        for table in ["entries", "bucket_heads", "ticks", "inbox"] {
          try await stage.sequencing(observer: log, settings: ["role": role]) {
            try await stage.app.execute("REVOKE ALL ON sluice.\(table) FROM \(role)")
            try await stage.app.execute(
              "INSERT INTO todos SELECT coalesce(max(id), 0) + 1, 1, 'x' FROM todos")
            let before = log.failures.count
            try await stage.until { log.failures.count > before + 1 }
            let error = log.failures.last?.error as? StorageError
            #expect(error?.code == .notPermitted)
            #expect(error?.message.contains("permission denied for table \(table)") == true)
            let status = try await StatusReader().read(stage.app)
            #expect(status.definitions.allSatisfy { $0.suspended == nil })
            try await stage.app.execute(Installer().grants(to: role))
            try await stage.settle()
          }
        }
        try await stage.expectSound()
        try await stage.app.execute("DROP OWNED BY \(role); DROP ROLE \(role)")
      } catch {
        try await stage.app.execute("DROP OWNED BY \(role); DROP ROLE \(role)")
        throw error
      }
    }
  }
}

/// Keeps what was observed.
final class ObservationLog: Observer {
  private let observations = Mutex<[Observation]>([])

  func observe(_ observation: Observation) {
    observations.withLock { $0.append(observation) }
  }

  /// The terms of leadership that failed.
  var failures: [Observation] {
    observations.withLock { $0.filter { $0.event == "sequencer.failed" } }
  }
}
