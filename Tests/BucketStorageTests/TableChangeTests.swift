import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import Testing

/// Partitions, rewrites and other changes of the tables themselves.
@Suite struct TableChangeTests {
  private static let partitioned = """
    CREATE TABLE todos (id int, list_id int, title text, PRIMARY KEY (id, list_id)) PARTITION BY LIST (list_id);
    CREATE TABLE todos_1 PARTITION OF todos FOR VALUES IN (1);
    CREATE TABLE todos_2 PARTITION OF todos FOR VALUES IN (2) PARTITION BY RANGE (id);
    CREATE TABLE todos_2a PARTITION OF todos_2 FOR VALUES FROM (0) TO (100);
    INSERT INTO todos VALUES (1, 1, 'a'), (2, 2, 'b');
    """

  private static let table = TestRules.table(
    "todos", key: [TestRules.column("id", "int4"), TestRules.column("list_id", "int4")])

  private static let rules = TestRules.rules([
    TestRules.definition(
      "by_list", table: table, bucket: "'[' || s.list_id || ']'",
      data: "json_build_object('title', s.title)::text")
  ])

  @Test func `rows move between partitions, and leaves are written to directly`() async throws {
    try await withStage(Self.partitioned, Self.rules) { stage in
      try await stage.sequencing {
        try await stage.app.execute("UPDATE todos SET list_id = 2 WHERE id = 1")
        try await stage.settle()
        let (first, second) = (try await stage.rows("1"), try await stage.rows("2"))
        #expect(first.isEmpty)
        #expect(second.keys.sorted() == ["1", "2"])
        try await stage.app.execute(
          "INSERT INTO todos_1 VALUES (3, 1, 'leaf'); UPDATE todos_2a SET title = 'leaf', id = 20 WHERE id = 2; "
            + "DELETE FROM todos_2 WHERE id = 1")
        try await stage.settle()
        let (third, fourth) = (try await stage.rows("1"), try await stage.rows("2"))
        #expect(third.keys.sorted() == ["3"])
        #expect(fourth.keys.sorted() == ["20"])
        try await stage.app.execute(
          "SET session_replication_role = replica; INSERT INTO todos VALUES (4, 1, 'applied'); "
            + "UPDATE todos_1 SET title = 'applied'; SET session_replication_role = origin")
        try await stage.settle()
        try await stage.expectSound()
        try await stage.app.execute("TRUNCATE todos_1")
        try await stage.settle()
        let fifth = try await stage.rows("1")
        #expect(fifth.isEmpty)
        try await stage.expectSound()
      }
    }
  }

  @Test func `partitions attached, created and detached later are followed`() async throws {
    try await withStage(Self.partitioned, Self.rules) { stage in
      try await stage.sequencing {
        try await stage.app.execute(
          "CREATE TABLE todos_3 (LIKE todos INCLUDING ALL); INSERT INTO todos_3 VALUES (30, 3, 'before'); "
            + "ALTER TABLE todos ATTACH PARTITION todos_3 FOR VALUES IN (3)")
        try await stage.until { try await stage.rows("3").count == 1 }
        try await stage.app.execute(
          "INSERT INTO todos_3 VALUES (31, 3, 'after'); UPDATE todos_3 SET title = 'x'")
        try await stage.settle()
        let attached = try await stage.rows("3")
        #expect(attached.count == 2)
        #expect(attached.values.allSatisfy { $0.contains("\"x\"") })
        // Written to before anyone can have seen that it is there.
        try await stage.app.execute(
          "CREATE TABLE todos_4 PARTITION OF todos FOR VALUES IN (4); INSERT INTO todos_4 VALUES (40, 4, 'new')"
        )
        try await stage.until { try await stage.rows("4").count == 1 }
        try await stage.app.execute("ALTER TABLE todos DETACH PARTITION todos_1")
        try await stage.until { try await stage.rows("1").isEmpty }
        try await stage.expectSound()
      }
    }
  }

  @Test func `a table may be rewritten while it is read`() async throws {
    try await withStage(
      Stage.todos + "; INSERT INTO todos SELECT i, i % 3, 'x' FROM generate_series(1, 300) i; "
        + "ALTER TABLE todos ADD extra int"
    ) { stage in
      try await stage.sequencing {
        let other = try await stage.connect()
        async let writing: Void = {
          for number in 1...60 {
            try await other.execute(
              "UPDATE todos SET title = 't\(number)', list_id = id % 4 WHERE id % 7 = \(number % 7)"
            )
          }
        }()
        let rewrites = [
          "VACUUM FULL todos", "ALTER TABLE todos ALTER extra TYPE bigint",
          "CLUSTER todos USING todos_pkey",
          "ALTER TABLE todos ALTER extra TYPE int",
          "ALTER TABLE todos ADD COLUMN more timestamptz DEFAULT clock_timestamp()",
          "ALTER TABLE todos DROP COLUMN more", "ALTER TABLE todos SET (fillfactor = 80)",
          "REINDEX TABLE todos",
        ]
        for _ in 0..<3 { for rewrite in rewrites { try await stage.app.execute(rewrite) } }
        try await writing
        try await stage.settle()
        try await stage.expectSound()
        let count = try await stage.app.query(
          "SELECT count(*) FROM sluice.entries WHERE data IS NOT NULL")
        #expect(count.int(0, 0) == 300)
        await other.close()
      }
    }
  }

  @Test func `a table that is dropped and made again is followed again`() async throws {
    try await withStage(Stage.todos + "; INSERT INTO todos VALUES (1, 1, 'old')") { stage in
      try await stage.sequencing {
        try await stage.app.execute(
          "BEGIN; DROP TABLE todos; \(Stage.todos); INSERT INTO todos VALUES (2, 1, 'new'); COMMIT")
        try await stage.until { try await stage.rows("1").keys.sorted() == ["2"] }
        try await stage.app.execute("INSERT INTO todos VALUES (3, 1, 'newer')")
        try await stage.settle()
        let rows = try await stage.rows("1")
        #expect(rows.keys.sorted() == ["2", "3"])
      }
    }
  }

  @Test func `a table without a key, and one that is unlogged, are refused with advice`()
    async throws
  {
    try await withStage(Stage.todos + "; CREATE UNLOGGED TABLE fast (id int PRIMARY KEY)", nil) {
      stage in
      let keyless = TestRules.rules([
        TestRules.definition(
          "a", table: TestRules.table("todos", key: []), bucket: "'[]'", data: "'{}'")
      ])
      let unlogged = TestRules.rules([
        TestRules.definition(
          "a", table: TestRules.table("fast", key: [TestRules.column("id", "int4")]),
          bucket: "'[]'", data: "'{}'")
      ])
      for (rules, code) in [(keyless, StorageError.Code.noKey), (unlogged, .unsuitableTable)] {
        let error = await #expect(throws: StorageError.self) { try await stage.deploy(rules) }
        #expect(error?.code == code)
        #expect(error?.hint != nil)
      }
    }
  }
}
