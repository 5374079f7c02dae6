import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import Testing

/// Changes of the very columns that capture writes down: the application's statements go on, and nothing
/// that they change is lost.
@Suite struct KeyChangeTests {
  private static let tables = """
    CREATE TABLE todos (id int PRIMARY KEY, list_id text NOT NULL, title text);
    CREATE TABLE lists (id text PRIMARY KEY, name text);
    INSERT INTO todos SELECT i, 'a', 't' || i FROM generate_series(1, 20) i;
    """

  private static let yaml = """
    bucket_definitions:
      all:
        data:
          - SELECT id, list_id, title FROM todos
      names:
        data:
          - SELECT id, name FROM lists
    """

  struct Change: Sendable, CustomTestStringConvertible {
    var change: String
    /// The key as the application calls it then.
    var key: String? = "id"
    var back: String
    var problem: String
    var testDescription: String { change }

    /// Writes of every kind, of one row and of several.
    func writes(_ number: Int) -> String {
      let value = 1000 + 10 * number
      guard let key else {
        return """
          INSERT INTO todos (list_id, title) VALUES ('b', 'n\(number)');
          INSERT INTO todos (list_id, title) SELECT 'b', 'm' FROM generate_series(1, 3);
          UPDATE todos SET title = 'u\(number)' WHERE title = 't\(number)';
          UPDATE todos SET list_id = 'c\(number)' WHERE title LIKE 't1%';
          DELETE FROM todos WHERE title = 't\(number + 4)'
          """
      }
      return """
        INSERT INTO todos (\(key), list_id, title) VALUES (\(value), 'b', 'n\(number)');
        INSERT INTO todos (\(key), list_id, title)
        SELECT \(value) + i, 'b', 'm' FROM generate_series(1, 3) i;
        UPDATE todos SET title = 'u\(number)' WHERE title = 't\(number)';
        UPDATE todos SET list_id = 'c\(number)' WHERE title LIKE 't1%';
        UPDATE todos SET \(key) = \(value + 5) WHERE title = 'n\(number)';
        DELETE FROM todos WHERE title = 't\(number + 4)'
        """
    }
  }

  private static let changes = [
    Change(
      change: "ALTER TABLE todos RENAME COLUMN id TO key", key: "key",
      back: "ALTER TABLE todos RENAME COLUMN key TO id",
      problem: "public.todos has no column id any more: it is called key now."),
    Change(
      change: "ALTER TABLE todos DROP COLUMN id", key: nil,
      back: "ALTER TABLE todos ADD COLUMN id serial PRIMARY KEY",
      problem: "public.todos has no column id any more."),
    Change(
      change: "ALTER TABLE todos DROP CONSTRAINT todos_pkey",
      back: "ALTER TABLE todos ADD PRIMARY KEY (id)",
      problem: "public.todos has no primary key or unique index over id any more."),
    Change(
      change: "ALTER TABLE todos DROP CONSTRAINT todos_pkey, ADD PRIMARY KEY (list_id, id)",
      back: "ALTER TABLE todos DROP CONSTRAINT todos_pkey, ADD PRIMARY KEY (id)",
      problem: "public.todos has no primary key or unique index over id any more."),
    Change(
      change: "ALTER TABLE todos ALTER id TYPE text",
      back: "ALTER TABLE todos ALTER id TYPE int USING id::int",
      problem: "Column id of public.todos has type text, and the rules were made for integer."),
    // Another column under the name of the key, of a type that no text fits.
    Change(
      change: "ALTER TABLE todos RENAME id TO old; ALTER TABLE todos ADD id point",
      key: "old", back: "ALTER TABLE todos DROP id; ALTER TABLE todos RENAME old TO id",
      problem: "Column id of public.todos has type point, and the rules were made for integer."),
  ]

  @Test(arguments: changes)
  func `writes succeed, the definition stands still, and the way back brings it up to date`(
    _ change: Change
  ) async throws {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      let before = Change(change: "", back: "", problem: "")
      try await stage.sequencing {
        // A session that has planned its captures, and one that has not.
        let planned = try await stage.connect()
        try await planned.execute(before.writes(0))
        try await stage.app.execute(change.change)
        try await planned.execute(change.writes(1))
        let fresh = try await stage.connect()
        try await fresh.execute(change.writes(2))
        try await stage.until { try await stage.problem(of: "all") != nil }
        let problem = try #require(try await stage.problem(of: "all"))
        #expect(problem.hasPrefix(change.problem))
        #expect(problem.count > change.problem.count + 10, "there is no remedy")
        try await fresh.execute(change.writes(3) + "; INSERT INTO lists VALUES ('l', 'other')")
        try await stage.settle()
        let other = try await stage.problem(of: "names")
        #expect(other == nil)

        try await stage.app.execute(change.back)
        try await planned.execute(before.writes(4))
        try await stage.until { try await stage.problem(of: "all") == nil }
        try await planned.execute(before.writes(5))
        try await stage.settle()
        try await stage.expectSound()
        try await stage.expectEveryRow("todos", of: "all")
        await planned.close()
        await fresh.close()
      }
    }
  }

  @Test func `a key is renamed and written by in one transaction, and rules follow it`()
    async throws
  {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      try await stage.sequencing {
        let change = Self.changes[0]
        try await stage.app.execute(
          "BEGIN; \(change.change); \(change.writes(1)); COMMIT; \(change.writes(2))")
        try await stage.deploy(
          try await stage.compile(Self.yaml.replacing("id, list_id", with: "key AS id, list_id")))
        try await stage.app.execute(change.writes(3))
        try await stage.settle()
        let problem = try await stage.problem(of: "all")
        #expect(problem == nil)
        try await stage.expectSound()
        try await stage.expectEveryRow("todos", of: "all")
      }
    }
  }

  @Test func `a key that becomes wider needs nothing`() async throws {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      try await stage.sequencing {
        try await stage.app.execute(
          "INSERT INTO todos VALUES (30, 'a', 'x'); ALTER TABLE todos ALTER id TYPE bigint; "
            + "INSERT INTO todos VALUES (9000000000, 'a', 'y'); UPDATE todos SET id = id + 9000000000 WHERE id < 5"
        )
        try await stage.settle()
        let problem = try await stage.problem(of: "all")
        #expect(problem == nil)
        try await stage.expectSound()
        try await stage.expectEveryRow("todos", of: "all")
      }
    }
  }

  @Test func `two columns that exchange their names are read again`() async throws {
    try await withStage(
      "CREATE TABLE todos (id int PRIMARY KEY, list_id int NOT NULL UNIQUE, title text); "
        + "INSERT INTO todos SELECT i, 100 - i, 't' FROM generate_series(1, 20) i; "
        + "CREATE TABLE lists (id text PRIMARY KEY, name text)", nil
    ) { stage in
      let rules = try await stage.compile(Self.yaml)
      try await stage.deploy(rules)
      let exchange =
        "BEGIN; ALTER TABLE todos RENAME id TO x; ALTER TABLE todos RENAME list_id TO id; "
        + "ALTER TABLE todos RENAME x TO list_id; UPDATE todos SET title = 'u' WHERE id > 90; COMMIT"
      try await stage.sequencing {
        try await stage.app.execute(exchange)
        try await stage.expectEveryRow("todos", of: "all")
        try await stage.until { try await stage.problem(of: "all") == nil }
        try await stage.settle()
        try await stage.expectSound()
      }
      // Unseen by a sequencer, and deployed over.
      try await stage.app.execute(exchange.replacing("id > 90", with: "id < 10"))
      try await stage.deploy(rules)
      try await stage.sequencing {
        try await stage.expectEveryRow("todos", of: "all")
        try await stage.until { try await stage.problem(of: "all") == nil }
        try await stage.settle()
        try await stage.expectSound()
      }
    }
  }

  @Test(arguments: [("bytea", "'\\x01'"), ("timestamptz", "'2026-01-01 00:00Z'")])
  func `a key whose text needs its type survives another one`(type: String, value: String)
    async throws
  {
    try await withStage(
      "CREATE TABLE todos (id \(type), list_id text, title text, PRIMARY KEY (id, list_id)); "
        + "CREATE TABLE lists (id \(type) PRIMARY KEY, name text)", nil
    ) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      let writes = """
        INSERT INTO todos VALUES (\(value), 'a', 't'), (\(value), 'b', 't');
        UPDATE todos SET title = 'u' WHERE list_id = 'a'; UPDATE todos SET title = 'u'; DELETE FROM todos;
        INSERT INTO lists VALUES (\(value), 'n'); UPDATE lists SET name = 'm'; DELETE FROM lists
        """
      try await stage.app.execute(writes)
      for table in ["todos", "lists"] {
        try await stage.app.execute("ALTER TABLE \(table) ALTER id TYPE text")
      }
      try await stage.app.execute("TRUNCATE sluice.inbox; \(writes)")
      let found = try await stage.app.query(
        "SELECT count(*), count(keys), count(DISTINCT source) FROM sluice.inbox")
      #expect(found.int(0, 0)! >= 6)
      #expect(found.int(0, 1) == 0)
      #expect(found.int(0, 2) == 2)
    }
  }

  @Test func `partitions and applied changes survive a renamed key`() async throws {
    try await withStage(
      """
      CREATE TABLE todos (id int, list_id text, title text, PRIMARY KEY (id, list_id))
        PARTITION BY LIST (list_id);
      CREATE TABLE todos_a PARTITION OF todos FOR VALUES IN ('a');
      CREATE TABLE todos_b (title text, list_id text NOT NULL, gone int, id int NOT NULL);
      ALTER TABLE todos_b DROP gone;
      ALTER TABLE todos ATTACH PARTITION todos_b FOR VALUES IN ('b');
      INSERT INTO todos SELECT i, 'a', 't' FROM generate_series(1, 10) i;
      CREATE TABLE lists (id text PRIMARY KEY, name text);
      """, nil
    ) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      @Sendable func writes(_ key: String) -> String {
        """
        INSERT INTO todos_b (\(key), list_id) VALUES (11, 'b');
        UPDATE todos SET list_id = 'b' WHERE \(key) = 1;
        UPDATE todos SET list_id = 'a' WHERE list_id = 'b'; UPDATE todos_a SET title = 'u';
        DELETE FROM todos_a WHERE \(key) = 2; DELETE FROM todos WHERE \(key) = 11;
        SET session_replication_role = replica;
        INSERT INTO todos (\(key), list_id) VALUES (12, 'a');
        UPDATE todos_a SET \(key) = 13 WHERE \(key) = 12; DELETE FROM todos WHERE \(key) = 13;
        SET session_replication_role = origin;
        """
      }
      try await stage.sequencing {
        try await stage.app.execute(writes("id"))
        try await stage.app.execute("ALTER TABLE todos RENAME id TO key")
        try await stage.app.execute(writes("key"))
        try await stage.until { try await stage.problem(of: "all") != nil }
        try await stage.app.execute("ALTER TABLE todos RENAME key TO id; " + writes("id"))
        try await stage.until { try await stage.problem(of: "all") == nil }
        try await stage.app.execute(writes("id"))
        try await stage.settle()
        try await stage.expectSound()
        try await stage.expectEveryRow("todos", of: "all")
      }
    }
  }

  /// Names that the functions use themselves.
  @Test(arguments: [
    "slot", "written", "key", "k", "n", "absent", "sluice_new", "keys", "new", "a\"b",
  ])
  func `a key may have any name`(_ name: String) async throws {
    let column = SQLIdentifier(name)
    let table = TestRules.table("things", key: [TestRules.column(name, "int4")])
    let rules = TestRules.rules([
      TestRules.definition(
        "all", table: table, bucket: "'[]'", object: "s.\(column)::text", data: "s.t",
        columns: [name, "t"])
    ])
    try await withStage("CREATE TABLE things (\(column) int PRIMARY KEY, t text)", rules) { stage in
      try await stage.app.execute(
        "INSERT INTO things VALUES (1, 'x'); INSERT INTO things VALUES (2, 'x'), (3, 'x'); "
          + "UPDATE things SET \(column) = 4 WHERE \(column) = 1")
      let keys = try await stage.capturedKeys()
      #expect(keys == ["1", "2", "3", "4"])
      try await stage.app.execute(
        "TRUNCATE sluice.inbox; ALTER TABLE things RENAME \(column) TO other; "
          + "INSERT INTO things VALUES (11, 'x'); INSERT INTO things VALUES (12, 'x'), (13, 'x'); "
          + "UPDATE things SET other = 14 WHERE other = 11; UPDATE things SET other = other + 100; "
          + "DELETE FROM things")
      let found = try await stage.app.query("SELECT count(*), count(keys) FROM sluice.inbox")
      #expect(found.int(0, 0)! >= 5)
      #expect(found.int(0, 1) == 0)
    }
  }
}

extension Stage {
  /// Waits until the one bucket of a definition has the rows of a table, told apart by their titles.
  func expectEveryRow(
    _ table: String, of definition: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await until(sourceLocation: sourceLocation) {
      let difference = try await app.query(
        """
        WITH held AS (
          SELECT e.data::json ->> 'list_id', e.data::json ->> 'title' FROM sluice.entries e
          JOIN sluice.queries q ON q.id = e.query
          JOIN sluice.definitions d ON d.id = q.definition AND d.state = 'active'
          WHERE d.name = $1::text AND e.data IS NOT NULL),
        found AS (SELECT list_id::text, title FROM \(table))
        SELECT (SELECT count(*) FROM (TABLE held EXCEPT ALL TABLE found) x)
          + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE held) x)
        """, [.text(definition)])
      return difference.int(0, 0) == 0
    }
  }

  /// The keys that the inbox holds, once each.
  func capturedKeys() async throws -> [String] {
    let result = try await app.query(
      "SELECT DISTINCT k COLLATE \"C\" FROM sluice.inbox, unnest(keys) k ORDER BY 1")
    return (0..<result.rowCount).compactMap { result.string($0, 0) }
  }
}
