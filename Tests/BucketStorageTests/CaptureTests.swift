import BucketStorage
import Postgres
import SQLGeneration
import Testing

/// What a statement leaves in the inbox.
@Suite struct CaptureTests {
  private static let table = TestRules.table("things", key: [TestRules.column("id", "int4")])

  private static let rules = TestRules.rules([
    TestRules.definition(
      "all", table: table, bucket: "'[]'", object: "s.id::text", data: "'x'",
      columns: ["id"])
  ])

  private static let tables = [
    "CREATE TABLE things (id int PRIMARY KEY, n int)",
    """
    CREATE TABLE things (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF things FOR VALUES FROM (MINVALUE) TO (0);
    CREATE TABLE high PARTITION OF things FOR VALUES FROM (0) TO (MAXVALUE)
    """,
  ]

  @Test(arguments: tables)
  func `the keys of every row, before and after, whatever their number`(_ table: String)
    async throws
  {
    try await withStage(table, Self.rules) { stage in
      for count: Int64 in [0, 1, 2, 3, 100_000, 100_001] {
        let steps: [(sql: String, keys: Int64)] = [
          ("INSERT INTO things SELECT i FROM generate_series(1, \(count)) i", count),
          ("UPDATE things SET n = 1", count),
          ("UPDATE things SET id = -id", 2 * count),
          ("DELETE FROM things", count),
        ]
        for (sql, keys) in steps {
          try await stage.app.execute("TRUNCATE sluice.inbox; \(sql)")
          let found = try await stage.app.query(
            """
            SELECT count(DISTINCT k), coalesce(bool_and(k IS NOT NULL), true),
              coalesce(bool_and(i.tableoid = format('sluice.inbox_%s', slot)::regclass
                AND slot = (xid::text::bigint / 4096) % 8), true)
            FROM sluice.inbox i LEFT JOIN unnest(i.keys) k ON true
            """)
          #expect(found.int(0, 0) == keys, "\(sql)")
          #expect(found.bool(0, 1) == true, "\(sql)")
          #expect(found.bool(0, 2) == true, "\(sql)")
        }
      }
    }
  }

  @Test func `a row that is lost on its way to another partition is captured`() async throws {
    try await withStage(Self.tables[1], Self.rules) { stage in
      try await stage.app.execute(
        """
        CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER swallow BEFORE INSERT ON low FOR EACH ROW EXECUTE FUNCTION swallow();
        INSERT INTO things VALUES (1), (2), (3)
        """)
      for (sql, keys) in [
        ("UPDATE things SET id = -id WHERE id = 1", ["1"]),
        ("UPDATE things SET id = -id", ["2", "3"]),
      ] {
        try await stage.app.execute("TRUNCATE sluice.inbox; \(sql)")
        let left = try await stage.app.query("SELECT count(*) FROM things WHERE id < 0")
        let captured = try await stage.capturedKeys()
        #expect(left.int(0, 0) == 0)
        #expect(Set(captured).isSuperset(of: keys), "\(sql)")
      }
    }
  }

  @Test func `what a transaction takes back is not captured, whatever its subtransactions`()
    async throws
  {
    try await withStage(Self.tables[0], Self.rules) { stage in
      try await stage.app.execute(
        """
        BEGIN; INSERT INTO things VALUES (1);
        SAVEPOINT a; INSERT INTO things VALUES (2); ROLLBACK TO a;
        SAVEPOINT b; INSERT INTO things VALUES (3); RELEASE b; COMMIT;
        BEGIN; INSERT INTO things VALUES (4); ROLLBACK
        """)
      let keys = try await stage.capturedKeys()
      #expect(keys == ["1", "3"])
      let transactions = try await stage.app.query(
        "SELECT count(DISTINCT i.xid), bool_and(i.xid::xid = t.xmin) FROM sluice.inbox i, things t WHERE t.id = 1"
      )
      #expect(transactions.int(0, 0) == 1)
      #expect(transactions.bool(0, 1) == true)
    }
  }
}
