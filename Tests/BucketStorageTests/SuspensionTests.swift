import BucketStorage
import Postgres
import SQLGeneration
import ServiceRuntime
import SyncRules
import TestSupport
import Testing

/// Source tables that are no longer as the rules read them, under a running sequencer.
@Suite struct SuspensionTests {
  private static let tables = """
    CREATE TABLE lists (id text PRIMARY KEY, name text);
    CREATE TABLE members (id serial PRIMARY KEY, person text, list_id text);
    CREATE TABLE todos (id int PRIMARY KEY, list_id text, title text, due timestamp);
    INSERT INTO lists VALUES ('a', 'one');
    INSERT INTO members (person, list_id) VALUES ('u1', 'a'), ('u2', 'a');
    INSERT INTO todos SELECT i, 'a', 't' || i, '2026-01-01 10:00' FROM generate_series(1, 3) i;
    """

  private static let yaml = """
    bucket_definitions:
      mine:
        parameters: SELECT list_id FROM members WHERE person = request.user_id()
        data:
          - SELECT id, title, due FROM todos WHERE list_id = bucket.list_id
      names:
        data:
          - SELECT id, name FROM lists
    """

  /// A change of the tables, what may go on meanwhile, and the way back.
  struct Break: Sendable, CustomTestStringConvertible {
    var change: String
    var meanwhile: String
    var back: String
    var problem: String
    var testDescription: String { change }
  }

  private static let writes =
    "INSERT INTO todos (id, list_id) VALUES (10, 'a'); DELETE FROM todos WHERE id = 1; "
    + "UPDATE todos SET list_id = 'b' WHERE id = 2"

  private static let breaks = [
    Break(
      change: "ALTER TABLE todos DROP COLUMN title", meanwhile: writes,
      back: "ALTER TABLE todos ADD COLUMN title text DEFAULT 'new'",
      problem: "public.todos has no column title any more."),
    Break(
      change: "ALTER TABLE todos RENAME COLUMN title TO name", meanwhile: writes,
      back: "ALTER TABLE todos RENAME COLUMN name TO title",
      problem: "public.todos has no column title any more: it is called name now."),
    Break(
      change: "ALTER TABLE todos ALTER title TYPE bytea USING title::bytea", meanwhile: writes,
      back: "ALTER TABLE todos ALTER title TYPE text USING convert_from(title, 'UTF8')",
      problem: "Column title of public.todos has type bytea, and the rules were made for text."),
    // No statement fails of it, and no row is written anew.
    Break(
      change: "SET TimeZone = 'UTC'; ALTER TABLE todos ALTER due TYPE timestamptz",
      meanwhile: writes, back: "ALTER TABLE todos ALTER due TYPE timestamp",
      problem: "Column due of public.todos has type timestamp with time zone, "
        + "and the rules were made for timestamp without time zone."),
    Break(
      change: "ALTER TABLE todos RENAME TO things",
      meanwhile: writes.replacing("todos", with: "things"),
      back: "ALTER TABLE things RENAME TO todos",
      problem: "There is no table public.todos any more."),
    Break(
      change: "DROP TABLE todos", meanwhile: "SELECT 1",
      back: "CREATE TABLE todos (id int PRIMARY KEY, list_id text, title text, due timestamp); "
        + "INSERT INTO todos (id, list_id) VALUES (10, 'a')",
      problem: "There is no table public.todos any more."),
  ]

  @Test(arguments: breaks)
  func `only the definition that reads it stands still, until the table is as it was`(
    _ broken: Break
  ) async throws {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      let mine = #"mine["a"]"#
      let before = try await stage.heads()
      try await stage.sequencing {
        try await stage.app.execute(broken.change)
        try await stage.until { try await stage.problem(of: "mine") != nil }
        let problem = try #require(try await stage.problem(of: "mine"))
        #expect(problem.hasPrefix(broken.problem))
        #expect(problem.count > broken.problem.count + 10, "there is no remedy")

        try await stage.app.execute(
          broken.meanwhile + "; INSERT INTO lists VALUES ('b', 'two')")
        try await stage.settle()
        let during = try await stage.heads()
        #expect(during[mine] == before[mine])
        #expect(during["names[]"]?.count == 2)
        let other = try await stage.problem(of: "names")
        #expect(other == nil)
      }
      // Another leader knows of it.
      try await stage.sequencing {
        try await stage.app.execute("INSERT INTO lists VALUES ('c', 'three')")
        try await stage.settle()
        let during = try await stage.heads()
        #expect(during[mine] == before[mine])
        #expect(during["names[]"]?.count == 3)

        try await stage.app.execute(broken.back)
        try await stage.until { try await stage.problem(of: "mine") == nil }
        try await stage.app.execute(
          "INSERT INTO todos (id, list_id) VALUES (11, 'a')")
        try await stage.settle()
        try await stage.expectSound()
        let after = try await stage.heads()
        let rows = try await stage.app.query("SELECT count(*) FROM todos WHERE list_id = 'a'")
        #expect(after[mine]?.count == rows.int(0, 0))
      }
    }
  }

  @Test func `while a table of rows is amiss, access can be taken away but not given`()
    async throws
  {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      try await stage.sequencing {
        try await stage.app.execute("ALTER TABLE todos DROP COLUMN title")
        try await stage.until { try await stage.problem(of: "mine") != nil }
        try await stage.app.execute(
          "DELETE FROM members WHERE person = 'u1'; INSERT INTO members (person, list_id) VALUES ('u3', 'a')"
        )
        try await stage.settle()
        let names = try await stage.granted(["u1", "u2", "u3"])
        #expect(names == [[], [#"mine["a"]"#], []])
        try await stage.app.execute("ALTER TABLE todos ADD COLUMN title text")
        try await stage.until { try await stage.problem(of: "mine") == nil }
        let after = try await stage.granted(["u1", "u2", "u3"])
        #expect(after == [[], [#"mine["a"]"#], [#"mine["a"]"#]])
        try await stage.expectSound()
      }
    }
  }

  @Test func `while a table of grants is amiss, nobody's access and no bucket of theirs changes`()
    async throws
  {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      let before = try await stage.heads()
      try await stage.sequencing {
        try await stage.app.execute("ALTER TABLE members RENAME person TO who")
        try await stage.until { try await stage.problem(of: "mine") != nil }
        try await stage.app.execute(
          "DELETE FROM members WHERE who = 'u1'; INSERT INTO members (who, list_id) VALUES ('u3', 'a'); "
            + "INSERT INTO todos VALUES (7, 'a', 'secret'); INSERT INTO lists VALUES ('b', 'two')")
        try await stage.settle()
        let (names, during) = (
          try await stage.granted(["u1", "u2", "u3"]), try await stage.heads()
        )
        #expect(names == [[#"mine["a"]"#], [#"mine["a"]"#], []])
        #expect(during[#"mine["a"]"#] == before[#"mine["a"]"#])
        #expect(during["names[]"]?.count == 2)
        try await stage.app.execute("ALTER TABLE members RENAME who TO person")
        try await stage.until { try await stage.problem(of: "mine") == nil }
        let after = try await stage.granted(["u1", "u2", "u3"])
        #expect(after == [[], [#"mine["a"]"#], [#"mine["a"]"#]])
        try await stage.expectSound()
      }
    }
  }

  @Test func `rules that fit the table end it`() async throws {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      try await stage.sequencing {
        try await stage.app.execute("ALTER TABLE todos RENAME COLUMN title TO name")
        try await stage.until { try await stage.problem(of: "mine") != nil }
        try await stage.app.execute(Self.writes)
        try await stage.deploy(
          try await stage.compile(Self.yaml.replacing("id, title", with: "id, name AS title")))
        try await stage.settle()
        let problem = try await stage.problem(of: "mine")
        #expect(problem == nil)
        try await stage.expectSound()
      }
    }
  }

  @Test func `a right that the gateway's role loses, and gets back`() async throws {
    try await withStage(Self.tables, nil) { stage in
      let role = "gateway_\(UInt32.random(in: 0 ... .max))"
      try await stage.app.execute(
        "CREATE ROLE \(role); GRANT SELECT ON ALL TABLES IN SCHEMA public TO \(role); "
          + Installer().grants(to: role))
      do {
        try await stage.deploy(try await stage.compile(Self.yaml))
        try await stage.sequencing(settings: ["role": role]) {
          try await stage.app.execute("REVOKE SELECT ON todos FROM \(role)")
          try await stage.until { try await stage.problem(of: "mine") != nil }
          let problem = try #require(try await stage.problem(of: "mine"))
          #expect(problem.contains("\(role) may not read column"))
          #expect(problem.contains("GRANT SELECT ON public.todos TO \(role)"))
          try await stage.app.execute(Self.writes + "; INSERT INTO lists VALUES ('b', 'two')")
          try await stage.settle()
          let names = try await stage.heads()["names[]"]
          #expect(names?.count == 2)

          // New rules over a table that it may not read are not waited for in vain.
          let rules = try await stage.compile(Self.yaml.replacing("title, ", with: ""))
          let error = await #expect(throws: StorageError.self) { try await stage.deploy(rules) }
          #expect(error?.code == .suspended)
          #expect(error?.hint?.contains("GRANT SELECT ON public.todos") == true)

          try await stage.app.execute("GRANT SELECT ON todos TO \(role)")
          try await stage.until { try await stage.problem(of: "mine") == nil }
          try await stage.until {
            try await stage.status().buildingGeneration == nil
          }
          try await stage.expectSound()
        }
        try await stage.app.execute("DROP OWNED BY \(role); DROP ROLE \(role)")
      } catch {
        try await stage.app.execute("DROP OWNED BY \(role); DROP ROLE \(role)")
        throw error
      }
    }
  }

  @Test func `a row that no statement can read stops its definition only`() async throws {
    let rules = TestRules.rules([
      TestRules.definition(
        "ratio", table: TestRules.todos, bucket: "'[1]'", data: "(10 / s.list_id)::text"),
      TestRules.definition(
        "plain", table: TestRules.todos, bucket: "'[1]'", data: "s.list_id::text"),
    ])
    try await withStage(Stage.todos, rules) { stage in
      try await stage.sequencing {
        try await stage.app.execute("INSERT INTO todos VALUES (1, 5, ''), (2, 0, '')")
        try await stage.settle()
        let (plain, ratio) = (
          try await stage.rows("1", definition: "plain"),
          try await stage.rows("1", definition: "ratio")
        )
        #expect(plain == ["1": "5", "2": "0"])
        #expect(ratio.isEmpty)
        let problem = try #require(try await stage.problem(of: "ratio"))
        #expect(problem.contains("PostgreSQL 22012"))
        try await stage.app.execute("UPDATE todos SET list_id = 2 WHERE id = 2")
        try await stage.until { try await stage.problem(of: "ratio") == nil }
        let after = try await stage.rows("1", definition: "ratio")
        #expect(after == ["1": "2", "2": "5"])
      }
    }
  }

  @Test func `a row that is a byte too large stops its definition, until it is shorter`()
    async throws
  {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      // What an entry has besides the text.
      let result = try await stage.app.query(
        """
        SELECT octet_length(e.data) + octet_length(e.object_id) - octet_length(l.name)
        FROM sluice.entries e JOIN lists l ON e.object_id = l.id WHERE l.id = 'a'
        """)
      let room = (32 << 20) - (try #require(result.int(0, 0)))
      try await stage.sequencing {
        try await stage.app.execute("UPDATE lists SET name = repeat('x', \(room)) WHERE id = 'a'")
        try await stage.settle()
        let full = try await stage.app.query(
          "SELECT max(octet_length(data) + octet_length(object_id)) FROM sluice.entries")
        #expect(full.int(0, 0) == 33_554_432)
        let before = try await stage.heads()

        try await stage.app.execute("UPDATE lists SET name = name || 'x' WHERE id = 'a'")
        try await stage.until { try await stage.problem(of: "names") != nil }
        let problem = try #require(try await stage.problem(of: "names"))
        #expect(
          problem.hasPrefix(
            "A row of public.lists is larger than the 32 MiB that a replica takes "
              + "(SLUICE_ROW_TOO_LARGE)."))
        try await stage.app.execute("INSERT INTO todos (id, list_id) VALUES (10, 'a')")
        try await stage.settle()
        let during = try await stage.heads()
        #expect(during["names[]"] == before["names[]"])
        #expect(during[#"mine["a"]"#]?.count == 4)

        // New rules over it are not waited for in vain.
        let rules = try await stage.compile(
          Self.yaml.replacing("SELECT id, name FROM", with: "SELECT id, name AS title FROM"))
        let error = await #expect(throws: StorageError.self) { try await stage.deploy(rules) }
        #expect(error?.code == .suspended)
        #expect(error?.message.contains("SLUICE_ROW_TOO_LARGE") == true)

        try await stage.app.execute("UPDATE lists SET name = 'short' WHERE id = 'a'")
        try await stage.until { try await stage.problem(of: "names") == nil }
        try await stage.settle()
        try await stage.expectSound()
      }
    }
  }
}

extension Stage {
  fileprivate struct Head: Equatable {
    var count: Int64
    var lastID: Int64
    var digest: Int64
  }

  /// Every bucket's head, by name.
  fileprivate func heads() async throws -> [String: Head] {
    let result = try await app.query(
      """
      SELECT d.name || b.key, h.row_count, h.last_id, h.digest FROM sluice.definitions d
      JOIN sluice.buckets b ON b.definition = d.id JOIN sluice.bucket_heads h ON h.bucket = b.id
      WHERE d.state = 'active'
      """)
    return Dictionary(
      uniqueKeysWithValues: (0..<result.rowCount).map { row in
        (
          result.string(row, 0)!,
          Head(
            count: result.int(row, 1)!, lastID: result.int(row, 2)!, digest: result.int(row, 3)!)
        )
      })
  }

  func status() async throws -> StatusReport {
    try await StatusReader().read(app)
  }

  /// Why an active definition stands still.
  func problem(of definition: String) async throws -> String? {
    try await status().definitions.first { $0.name == definition && $0.state == "active" }?
      .suspended
  }

  /// The buckets of `mine` that each of these people may hold.
  fileprivate func granted(_ people: [String]) async throws -> [[String]] {
    var all: [[String]] = []
    for person in people {
      let state = try await store.checkpoint(
        for: RequestContext(claimsJSON: "{\"sub\":\"\(person)\"}"))
      all.append(state.buckets.filter { $0.definition == "mine" }.map(\.name))
    }
    return all
  }
}
