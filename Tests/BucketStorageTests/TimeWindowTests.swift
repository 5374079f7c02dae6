import BucketStorage
import Postgres
import SQLGeneration
import TestSupport
import Testing

/// Conditions on the present: rows come and go by themselves.
@Suite struct TimeWindowTests {
  private static let tables = """
    CREATE TABLE events (id int PRIMARY KEY, at timestamptz, local timestamp, day date, person text);
    """

  private static func rules(_ condition: String) -> String {
    """
    config: {edition: 2}
    bucket_definitions:
      mine:
        parameters: SELECT request.jwt() ->> 'list' AS person
        data: ["SELECT id, person FROM events WHERE person = bucket.person AND \(condition)"]
    """
  }

  private func withWindow(
    _ condition: String, _ body: @escaping @Sendable (Stage) async throws -> Void
  ) async throws {
    try await withStage(Self.tables, nil) { stage in
      let rules = try await stage.compile(Self.rules(condition))
      try await stage.sequencing {
        try await stage.deploy(rules)
        try await body(stage)
      }
    }
  }

  private func ids(_ stage: Stage) async throws -> Set<String> {
    Set(try await stage.rows("\"ann\"").keys)
  }

  private func wakeups(_ stage: Stage) async throws -> Int64 {
    try await stage.app.query("SELECT count(*) FROM sluice.wakeups").int(0, 0) ?? -1
  }

  @Test("rows leave when they are too old, without being touched, and no other row is written")
  func leaves() async throws {
    try await withWindow("at > now() - interval '2 seconds'") { stage in
      try await stage.app.execute(
        """
        INSERT INTO events (id, at, person) VALUES (1, clock_timestamp(), 'ann'),
          (2, clock_timestamp() + interval '1 hour', 'ann'), (3, clock_timestamp() - interval '1 hour', 'ann'),
          (4, NULL, 'ann'), (5, 'infinity', 'ann'), (6, '-infinity', 'ann')
        """)
      try await stage.settle()
      #expect(try await ids(stage) == ["1", "2", "5"])
      // Rows 1 and 2 have yet to leave; the others are what they stay.
      #expect(try await wakeups(stage) == 2)
      try await stage.until { try await ids(stage) == ["2", "5"] }
      try await stage.expectSound()
      let left = try await stage.app.query(
        """
        SELECT e.stamp::timestamptz >= v.at + interval '2 seconds',
          e.stamp::timestamptz < v.at + interval '3 seconds',
          (SELECT count(*) FROM sluice.entries WHERE data IS NULL)
        FROM sluice.entries e JOIN events v ON v.id::text = e.source_key
        WHERE v.id = 1 AND e.data IS NULL
        """)
      try #require(left.rowCount == 1)
      #expect(left.bool(0, 0) == true)
      #expect(left.bool(0, 1) == true)
      #expect(left.int(0, 2) == 1)
      #expect(try await wakeups(stage) == 1)
    }
  }

  @Test("rows come at their time, and a change of the row moves it")
  func comes() async throws {
    try await withWindow("at <= now()") { stage in
      try await stage.app.execute(
        """
        INSERT INTO events (id, at, person) VALUES (1, clock_timestamp() + interval '1 second', 'ann'),
          (2, clock_timestamp() + interval '1 second', 'ann'), (3, clock_timestamp() + interval '1 second', 'ann')
        """)
      try await stage.app.execute(
        "UPDATE events SET at = clock_timestamp() + interval '1 hour' WHERE id = 2")
      try await stage.app.execute("DELETE FROM events WHERE id = 3")
      try await stage.settle()
      #expect(try await ids(stage).isEmpty)
      try await stage.until { try await ids(stage) == ["1"] }
      try await stage.app.execute("UPDATE events SET at = clock_timestamp() WHERE id = 2")
      try await stage.until { try await ids(stage) == ["1", "2"] }
      #expect(try await wakeups(stage) == 0)
      try await stage.expectSound()
    }
  }

  @Test("rows that were there before the rules leave at their time as well")
  func backfilled() async throws {
    try await withStage(Self.tables, nil) { stage in
      try await stage.app.execute(
        """
        INSERT INTO events (id, at, person)
        SELECT n, clock_timestamp() - interval '10 seconds' + n * interval '300 milliseconds', 'ann'
        FROM generate_series(1, 40) n
        """)
      let rules = try await stage.compile(Self.rules("at > now() - interval '10 seconds'"))
      try await stage.sequencing {
        try await stage.deploy(rules)
        try await stage.until { try await ids(stage).count < 35 }
        try await stage.until { try await ids(stage).count < 30 }
        try await stage.expectSound()
      }
    }
  }

  @Test("turns that no rules wait for any more pass once, and make no ticks")
  func forgotten() async throws {
    try await withWindow("at > now() - interval '1 second'") { stage in
      try await stage.app.execute(
        "INSERT INTO events (id, at, person) VALUES (1, clock_timestamp() + interval '1 second', 'ann')"
      )
      try await stage.settle()
      #expect(try await wakeups(stage) == 1)
      try await stage.deploy(try await stage.compile(Self.rules("at IS NOT NULL")))
      try await stage.until { try await wakeups(stage) == 0 }
      #expect(try await ids(stage) == ["1"])
      let before = try await stage.store.head().tick.number
      try await Task.sleep(for: .milliseconds(300))
      #expect(try await stage.store.head().tick.number == before)
    }
  }

  @Test("a lookup with a window gives and takes buckets at its time")
  func lookups() async throws {
    try await withStage(
      "CREATE TABLE shifts (id int PRIMARY KEY, person text, team int, starts timestamptz, ends timestamptz);"
        + "CREATE TABLE cards (id int PRIMARY KEY, team int); INSERT INTO cards VALUES (1, 7)", nil
    ) { stage in
      let rules = try await stage.compile(
        """
        config: {edition: 3}
        streams:
          cards:
            auto_subscribe: true
            query: |
              SELECT id FROM cards WHERE team IN (SELECT team FROM shifts
                WHERE person = auth.parameter('list') AND now() BETWEEN starts AND ends)
        """)
      try await stage.sequencing {
        try await stage.deploy(rules)
        try await stage.app.execute(
          """
          INSERT INTO shifts VALUES
            (1, 'ann', 7, clock_timestamp() + interval '1 second', clock_timestamp() + interval '2 seconds')
          """)
        try await stage.settle()
        #expect(try await ids(stage).isEmpty)
        try await stage.until { try await ids(stage) == ["1"] }
        try await stage.until { try await ids(stage).isEmpty }
        try await stage.expectSound()
      }
    }
  }

  /// At the instant itself and a microsecond on either side, by PostgreSQL's own comparison.
  @Test(
    "a condition turns exactly where PostgreSQL's own does",
    arguments: ["at", "local", "day"], ["<", "<=", ">", ">="])
  func boundary(column: String, symbol: String) async throws {
    try await withStage(Self.tables, nil) { stage in
      let rules = try await stage.compile(
        Self.rules("\(column) \(symbol) now() - interval '1 day 2 hours'"))
      let query = try #require(rules.definitions.first?.queries.first)
      let connection = try await stage.database.connect(settings: CompiledRules.sessionSettings)
      try await connection.execute(
        "INSERT INTO public.events VALUES (1, '2026-03-01 00:00Z', '2026-03-01', '2026-03-01', 'ann')"
      )
      // The instants at which the row turns, as the SQL says, and one around each.
      let turns = try await connection.query(
        "SELECT \(query.moments[0])::text FROM public.events s")
      let turn = try #require(turns.string(0, 0))
      var truths: [Bool] = []
      for step in ["-1 microsecond", "0", "1 microsecond"] {
        let now = try await connection.query(
          "SELECT ('\(turn)'::timestamptz + interval '\(step)')::text")
        let stamp = try #require(now.string(0, 0))
        _ = try await connection.query("SELECT set_config('sluice.now', $1, false)", [.text(stamp)])
        let found = try await connection.query(query.evaluationAll()).rowCount == 1
        let expected = try await connection.query(
          "SELECT \(column) \(symbol) '\(stamp)'::timestamptz - interval '26 hours' FROM public.events"
        )
        #expect(found == expected.bool(0, 0), "\(column) \(symbol) at \(stamp)")
        truths.append(found)
      }
      // It is otherwise from the turn on, and not before.
      #expect(truths[0] != truths[1])
      #expect(truths[1] == truths[2])
      await connection.close()
    }
  }
}
