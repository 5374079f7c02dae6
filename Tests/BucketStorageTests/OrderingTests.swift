import BucketStorage
import Postgres
import Testing

/// Writers that commit in every order.
@Suite struct OrderingTests {
  enum Ending: String, CaseIterable, Sendable {
    case commit, prepared, savepoint, subtransactionRolledBack
  }

  @Test(arguments: Ending.allCases)
  func `a transaction that commits late is not missed, and holds nobody up`(
    _ ending: Ending
  ) async throws {
    try await withStage { stage in
      try await stage.sequencing {
        let late = try await stage.connect()
        try await late.execute("BEGIN")
        switch ending {
        case .commit, .prepared:
          try await late.execute("INSERT INTO todos VALUES (1, 1, 'late')")
        case .savepoint:
          try await late.execute(
            "SAVEPOINT a; INSERT INTO todos VALUES (1, 1, 'late'); RELEASE a; SAVEPOINT b")
        case .subtransactionRolledBack:
          try await late.execute(
            "SAVEPOINT a; INSERT INTO todos VALUES (9, 1, 'gone'); ROLLBACK TO a; "
              + "INSERT INTO todos VALUES (1, 1, 'late')")
        }
        if ending == .prepared { try await late.execute("PREPARE TRANSACTION 'late'") }
        _ = try await stage.app.query("INSERT INTO todos VALUES (2, 1, 'early')")
        try await stage.settle()
        let before = try await stage.rows("1")
        #expect(before.keys.sorted() == ["2"])
        try await late.execute(ending == .prepared ? "COMMIT PREPARED 'late'" : "COMMIT")
        try await stage.settle()
        let after = try await stage.rows("1")
        #expect(after.keys.sorted() == ["1", "2"])
        await late.close()
      }
    }
  }

  @Test func `rows of one transaction get one stamp, and their ids no boundary`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        _ = try await stage.app.query(
          "INSERT INTO todos SELECT i, 1, 'x' FROM generate_series(1, 40) i")
        try await stage.settle()
        _ = try await stage.app.query("UPDATE todos SET title = 'y' WHERE id IN (3, 31)")
        try await stage.settle()
        let result = try await stage.app.query(
          """
          SELECT count(DISTINCT stamp), bool_and(id % 16 <> 0), count(DISTINCT id),
            max(id) < (SELECT max(boundary_id) FROM sluice.ticks)
          FROM sluice.entries WHERE object_id IN ('3', '31')
          """)
        #expect(result.int(0, 0) == 1)
        #expect(result.bool(0, 1) == true)
        #expect(result.int(0, 2) == 2)
        #expect(result.bool(0, 3) == true)
      }
    }
  }

  @Test func `a row whose output stays the same gets no new position`() async throws {
    try await withStage(Stage.todos + "; ALTER TABLE todos ADD note text") { stage in
      try await stage.sequencing {
        _ = try await stage.app.query("INSERT INTO todos VALUES (1, 1, 'a')")
        try await stage.settle()
        let before = try await stage.app.query("SELECT id FROM sluice.entries")
        _ = try await stage.app.query("UPDATE todos SET note = 'n'")
        try await stage.settle()
        let after = try await stage.app.query("SELECT id FROM sluice.entries")
        #expect(before.int(0, 0) == after.int(0, 0))
      }
    }
  }

  @Test func `an idle transaction with an id holds nothing up`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        let idle = try await stage.connect()
        try await idle.execute("CREATE TABLE other (); BEGIN; LOCK TABLE other; ")
        _ = try await idle.query("SELECT pg_current_xact_id()")
        for title in ["a", "b", "c"] {
          _ = try await stage.app.query(
            "INSERT INTO todos VALUES (1, 1, $1) ON CONFLICT (id) DO UPDATE SET title = excluded.title",
            [.text(title)])
          try await stage.settle()
          let rows = try await stage.rows("1")
          #expect(rows["1"]?.contains("\"\(title)\"") == true)
        }
        await idle.close()
      }
    }
  }

  @Test func `deleting by cascade takes the children's rows`() async throws {
    try await withStage(
      "CREATE TABLE lists (id int PRIMARY KEY); CREATE TABLE todos (id int PRIMARY KEY, "
        + "list_id int REFERENCES lists ON DELETE CASCADE, title text); "
        + "INSERT INTO lists VALUES (1), (2); INSERT INTO todos VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')"
    ) { stage in
      try await stage.sequencing {
        _ = try await stage.app.query("DELETE FROM lists WHERE id = 1")
        try await stage.settle()
        let (first, second) = (try await stage.rows("1"), try await stage.rows("2"))
        #expect(first.isEmpty)
        #expect(second.count == 1)
      }
    }
  }

  @Test func `truncate beside a transaction that waits for it leaves the new rows only`()
    async throws
  {
    try await withStage { stage in
      try await stage.sequencing {
        _ = try await stage.app.query(
          "INSERT INTO todos SELECT i, 1, 'old' FROM generate_series(1, 20) i")
        try await stage.settle()
        let open = try await stage.connect()
        // It has an id, and writes after the TRUNCATE has committed.
        try await open.execute("BEGIN; CREATE TEMP TABLE t (); ")
        _ = try await stage.app.query("TRUNCATE todos")
        try await open.execute("INSERT INTO todos VALUES (5, 1, 'new')")
        try await stage.settle()
        let between = try await stage.rows("1")
        #expect(between.isEmpty)
        try await open.execute("COMMIT")
        try await stage.settle()
        let rows = try await stage.rows("1")
        #expect(rows.keys.sorted() == ["5"])
        try await stage.app.execute(
          "BEGIN; TRUNCATE todos; INSERT INTO todos VALUES (6, 1, 'same'); COMMIT")
        try await stage.settle()
        let last = try await stage.rows("1")
        #expect(last.keys.sorted() == ["6"])
        await open.close()
      }
    }
  }

  @Test func `every kind of statement is captured`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        try await stage.app.execute("COPY todos FROM PROGRAM 'printf \"1\\t1\\ta\\n2\\t1\\tb\\n\"'")
        try await stage.app.execute(
          """
          MERGE INTO todos t USING (VALUES (2), (3)) v(id) ON t.id = v.id
          WHEN MATCHED THEN UPDATE SET title = 'merged'
          WHEN NOT MATCHED THEN INSERT VALUES (v.id, 1, 'made')
          """)
        try await stage.app.execute(
          "INSERT INTO todos VALUES (1, 1, 'x'), (4, 1, 'y') ON CONFLICT (id) DO UPDATE SET title = 'upsert'"
        )
        try await stage.app.execute(
          "WITH d AS (DELETE FROM todos WHERE id = 4 RETURNING *) INSERT INTO todos SELECT 5, 1, title FROM d"
        )
        try await stage.app.execute(
          "SET session_replication_role = replica; INSERT INTO todos VALUES (6, 1, 'r'), (7, 1, 'r'); "
            + "UPDATE todos SET id = 8 WHERE id = 7; DELETE FROM todos WHERE id = 3; "
            + "SET session_replication_role = origin")
        try await stage.settle()
        let rows = try await stage.rows("1")
        #expect(rows.keys.sorted() == ["1", "2", "5", "6", "8"])
        #expect(rows["1"]?.contains("upsert") == true)
        #expect(rows["2"]?.contains("merged") == true)
        try await stage.expectSound()
      }
    }
  }
}
