import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// Random conditions of streams against the same conditions in PostgreSQL's own SQL.
///
/// `SLUICE_TEST_SEED` replays a run.
@Suite struct RandomStreamsTests {
  private static let schema = """
    CREATE TABLE tasks (id int PRIMARY KEY, owner text, team text, tags jsonb, n int, shared boolean);
    CREATE TABLE members (id int PRIMARY KEY, person text, team text, active boolean);
    CREATE TABLE teams (id text PRIMARY KEY, org text);
    CREATE TABLE staff (id int PRIMARY KEY, person text, org text);
    CREATE TABLE watchers (id int PRIMARY KEY, task int, person text, team text);
    """

  private static func catalog() -> Catalog {
    func table(_ name: String, _ columns: [(String, String)]) -> CatalogTable {
      CatalogTable(
        schema: "public", name: name,
        columns: columns.map { CatalogColumn(name: $0.0, type: .builtIn($0.1)) }, key: ["id"])
    }
    return Catalog(tables: [
      table(
        "tasks",
        [
          ("id", "int4"), ("owner", "text"), ("team", "text"), ("tags", "jsonb"), ("n", "int4"),
          ("shared", "bool"),
        ]),
      table("members", [("id", "int4"), ("person", "text"), ("team", "text"), ("active", "bool")]),
      table("teams", [("id", "text"), ("org", "text")]),
      table("staff", [("id", "int4"), ("person", "text"), ("org", "text")]),
      table(
        "watchers", [("id", "int4"), ("task", "int4"), ("person", "text"), ("team", "text")]),
    ])
  }

  /// A condition in both languages; `r.c` are the claims.
  private struct Atom {
    var rules: String
    var sql: String
    /// Whether it stands below NOT: its values are of one home.
    var isNegatable = false
  }

  private static let atoms = [
    Atom(rules: "tasks.owner = auth.user_id()", sql: "t.owner = r.c ->> 'sub'"),
    Atom(rules: "auth.parameter('lead') = tasks.team", sql: "r.c ->> 'lead' = t.team"),
    Atom(
      rules: "tasks.team IN auth.parameter('teams')",
      sql: "t.team IN (SELECT jsonb_array_elements_text(r.c -> 'teams'))"),
    Atom(
      rules: "tasks.team IN (SELECT team FROM members WHERE person = auth.user_id() AND active)",
      sql: "t.team IN (SELECT m.team FROM members m WHERE m.person = r.c ->> 'sub' AND m.active)"),
    Atom(
      rules: "tasks.team IN mine",
      sql: "t.team IN (SELECT m.team FROM members m WHERE m.person = r.c ->> 'sub')"),
    Atom(
      rules: "tasks.team IN (SELECT teams.id FROM teams JOIN staff ON staff.org = teams.org "
        + "WHERE staff.person = auth.user_id())",
      sql: "t.team IN (SELECT x.id FROM teams x JOIN staff s USING (org) "
        + "WHERE s.person = r.c ->> 'sub')"),
    Atom(
      rules: "tasks.team IN (SELECT id FROM teams WHERE org IN "
        + "(SELECT org FROM staff WHERE person = auth.user_id()) OR org IN auth.parameter('orgs'))",
      sql: "t.team IN (SELECT x.id FROM teams x WHERE x.org IN (SELECT s.org FROM staff s "
        + "WHERE s.person = r.c ->> 'sub') OR r.c -> 'orgs' ? x.org)"),
    Atom(
      rules: "tasks.owner IN (SELECT person FROM members WHERE team IN mine)",
      sql: "t.owner IN (SELECT m.person FROM members m WHERE m.team IN (SELECT o.team "
        + "FROM members o WHERE o.person = r.c ->> 'sub'))"),
    Atom(
      rules: "tasks.id IN (SELECT task FROM watchers WHERE watchers.person = auth.user_id() "
        + "AND watchers.team = tasks.team)",
      sql: "EXISTS (SELECT FROM watchers w WHERE w.task = t.id AND w.person = r.c ->> 'sub' "
        + "AND w.team = t.team)"),
    Atom(
      rules: "tasks.id IN (SELECT w.task FROM watchers AS w JOIN members AS m "
        + "ON m.team = w.team AND m.person = w.person WHERE m.person = auth.user_id())",
      sql: "t.id IN (SELECT w.task FROM watchers w JOIN members m USING (team, person) "
        + "WHERE m.person = r.c ->> 'sub')"),
    Atom(
      rules: "tasks.tags && auth.parameter('teams')",
      sql: "EXISTS (SELECT FROM jsonb_array_elements_text(t.tags) a WHERE r.c -> 'teams' ? a)"),
    Atom(
      rules: "tasks.tags && (SELECT team FROM members WHERE person = auth.user_id())",
      sql: "EXISTS (SELECT FROM members m WHERE m.person = r.c ->> 'sub' AND t.tags ? m.team)"),
    Atom(rules: "auth.user_id() IN tasks.tags", sql: "t.tags ? (r.c ->> 'sub')"),
    Atom(rules: "tasks.team IN tasks.tags", sql: "t.tags ? t.team", isNegatable: true),
    Atom(
      rules: "auth.user_id() IN (SELECT person FROM members WHERE active)",
      sql: "r.c ->> 'sub' IN (SELECT m.person FROM members m WHERE m.active)"),
    Atom(
      rules: "auth.parameter('lead') IN auth.parameter('teams')",
      sql: "r.c -> 'teams' ? (r.c ->> 'lead')"),
    Atom(rules: "auth.parameter('rank') > 1", sql: "(r.c ->> 'rank')::int > 1", isNegatable: true),
    Atom(
      rules: "tasks.team IN (SELECT value FROM json_each(auth.parameter('teams')))",
      sql: "r.c -> 'teams' ? t.team"),
    Atom(
      rules: "auth.parameter('lead') IN (SELECT team FROM members WHERE person = auth.user_id())",
      sql: "r.c ->> 'lead' IN (SELECT m.team FROM members m WHERE m.person = r.c ->> 'sub')"),
    Atom(rules: "tasks.n = auth.parameter('rank')", sql: "t.n = (r.c ->> 'rank')::int"),
    Atom(rules: "tasks.n + 1 = auth.parameter('rank')", sql: "t.n + 1 = (r.c ->> 'rank')::int"),
    Atom(
      rules: "tasks.n IN auth.parameter('ids')",
      sql: "t.n IN (SELECT i::int FROM jsonb_path_query(r.c -> 'ids', "
        + "CASE jsonb_typeof(r.c -> 'ids') WHEN 'object' THEN '$.*' ELSE '$[*]' END::jsonpath) i)"),
    Atom(
      rules: "upper(tasks.owner) IN (SELECT upper(m.person) FROM members AS m "
        + "WHERE m.team = auth.parameter('lead'))",
      sql: "upper(t.owner) IN (SELECT upper(m.person) FROM members m WHERE m.team = r.c ->> 'lead')"
    ),
    Atom(
      rules: "tasks.n IN (SELECT CASE WHEN m.active THEN 1 WHEN m.team = 'k1' THEN 4 END "
        + "FROM members AS m WHERE m.person IN ARRAY[auth.user_id(), 'cy'])",
      sql: "t.n IN (SELECT CASE WHEN m.active THEN 1 WHEN m.team = 'k1' THEN 4 END "
        + "FROM members m WHERE m.person IN (r.c ->> 'sub', 'cy'))"),
    Atom(rules: "tasks.shared", sql: "t.shared", isNegatable: true),
    Atom(rules: "tasks.n IN ARRAY[1, 2, 3]", sql: "t.n IN (1, 2, 3)", isNegatable: true),
    Atom(rules: "tasks.n IN '[2, 4]'", sql: "t.n IN (2, 4)", isNegatable: true),
    Atom(rules: "tasks.n BETWEEN 2 AND 5", sql: "t.n BETWEEN 2 AND 5", isNegatable: true),
    Atom(rules: "tasks.n != 3", sql: "t.n IS DISTINCT FROM 3", isNegatable: true),
    Atom(rules: "tasks.owner IS NULL", sql: "t.owner IS NULL", isNegatable: true),
  ]

  /// A tree of AND, OR and, where it may stand, NOT. NULL is false, as in the rules.
  private static func condition(_ depth: Int, _ random: inout SeededGenerator) -> Atom {
    if depth == 0 || Int.random(in: 0...3, using: &random) == 0 {
      let atom = atoms.randomElement(using: &random)!
      return Atom(
        rules: atom.rules, sql: "coalesce(\(atom.sql), false)", isNegatable: atom.isNegatable)
    }
    let (left, right) = (condition(depth - 1, &random), condition(depth - 1, &random))
    let word = Bool.random(using: &random) ? "AND" : "OR"
    let both = Atom(
      rules: "(\(left.rules) \(word) \(right.rules))", sql: "(\(left.sql) \(word) \(right.sql))",
      isNegatable: left.isNegatable && right.isNegatable)
    guard both.isNegatable, Bool.random(using: &random) else { return both }
    return Atom(rules: "NOT \(both.rules)", sql: "(NOT \(both.sql))", isNegatable: true)
  }

  private static func rows(_ random: inout SeededGenerator) -> String {
    func one(_ values: [String]) -> String {
      values.randomElement(using: &random) ?? "NULL"
    }
    let people = ["'ann'", "'bob'", "'cy'", "NULL"]
    let teams = ["'k1'", "'k2'", "'k3'", "'k4'", "NULL"]
    let orgs = ["'o1'", "'o2'", "NULL"]
    let flags = ["true", "false", "NULL"]
    var sql = ""
    for id in 1...40 {
      let tags = ["k1", "k2", "ann", "bob", "7"].filter { _ in Bool.random(using: &random) }
      let list = tags.map { "\"\($0)\"" }.joined(separator: ",")
      sql += "INSERT INTO tasks VALUES (\(id), \(one(people)), \(one(teams)), "
      sql += "\(one(["'[\(list)]'", "NULL"])), \(one(["1", "2", "3", "4", "9", "NULL"])), "
      sql += "\(one(flags)));\n"
    }
    for id in 1...8 {
      sql += "INSERT INTO members VALUES (\(id), \(one(people)), \(one(teams)), \(one(flags)));\n"
      sql += "INSERT INTO staff VALUES (\(id), \(one(people)), \(one(orgs)));\n"
      sql += "INSERT INTO watchers VALUES (\(id), \(Int.random(in: 1...40, using: &random)), "
      sql += "\(one(people)), \(one(teams)));\n"
    }
    for team in 1...4 { sql += "INSERT INTO teams VALUES ('k\(team)', \(one(orgs)));\n" }
    return sql
  }

  private static let claims = [
    #"{"sub":"ann","teams":["k1","k3"],"orgs":["o2"],"lead":"k1","rank":2,"ids":[1,9]}"#,
    #"{"sub":"bob","teams":[],"orgs":["o1","o1"],"lead":"k4","rank":1,"ids":{"a":3}}"#,
    #"{"sub":"cy","teams":["k2"],"lead":null}"#,
    "{}",
  ]

  /// What stands in FROM beside the tasks, with what it demands.
  private static let sources = [
    Atom(rules: "", sql: ""), Atom(rules: "", sql: ""),
    Atom(
      rules: " JOIN members AS m ON m.team = tasks.team AND m.person = auth.user_id()",
      sql: " JOIN public.members x ON x.team = t.team AND x.person = r.c ->> 'sub'"),
    Atom(
      rules: ", json_each(tasks.tags) AS e JOIN staff AS s ON s.person = e.value",
      sql: " JOIN LATERAL jsonb_array_elements_text(t.tags) e ON true "
        + "JOIN public.staff s ON s.person = e"),
    Atom(
      rules: ", mine JOIN teams ON teams.id = mine.team",
      sql: " JOIN public.members x ON x.person = r.c ->> 'sub' "
        + "JOIN public.teams y ON y.id = x.team"),
  ]

  @Test func `who sees what is what PostgreSQL's own joins give`() async throws {
    var random = SeededGenerator()
    let seed = random.seed
    var compared = 0
    var seen = 0
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        "SET search_path = public; \(Self.schema) \(Self.rows(&random)) RESET search_path")
      for _ in 0..<120 {
        let condition = Self.condition(3, &random)
        let source = Self.sources.randomElement(using: &random)!
        let rules = """
          config: { edition: 3 }
          with:
            mine: SELECT team FROM members WHERE person = auth.user_id()
          streams:
            s:
              auto_subscribe: true
              query: SELECT tasks.id, tasks.n FROM tasks\(source.rules) WHERE \(condition.rules)
          """
        let (read, _) = RulesReader.read(rules, fileName: "rules.yaml")
        let (plan, diagnostics) = PlanCompiler.compile(try #require(read), Self.catalog())
        let errors = diagnostics.filter { $0.severity == .error }
        if errors.map(\.code) == [.tooManyTerms] { continue }
        let compiled = SQLGenerator.compile(
          try #require(plan, "seed \(seed): \(condition.rules): \(errors.map(\.message))"))
        try await materialise(compiled, connection)
        for claims in Self.claims {
          let visible = try await visible(compiled, claims, connection)
          let expected = try await connection.query(
            """
            SELECT t.id::text FROM (SELECT $1::jsonb AS c) r CROSS JOIN public.tasks t\(source.sql)
            WHERE \(Self.qualified(condition.sql))
            """, [.text(claims)])
          #expect(
            visible == Set((0..<expected.rowCount).compactMap { expected.string($0, 0) }),
            "seed \(seed), \(claims): \(source.rules) \(condition.rules)")
          compared += 1
          seen += visible.count
        }
      }
    }
    #expect(compared > 300 && seen > 1000, "seed \(seed): \(compared) requests saw \(seen) rows")
  }

  private static func qualified(_ sql: String) -> String {
    ["members", "staff", "watchers", "teams"].reduce(sql) { text, table in
      text.replacing("FROM \(table) ", with: "FROM public.\(table) ")
        .replacing("JOIN \(table) ", with: "JOIN public.\(table) ")
    }
  }

  /// Puts what the lookups give, and the rows of the buckets, into tables.
  private func materialise(
    _ rules: CompiledRules, _ connection: PostgresConnection
  ) async throws {
    try await connection.execute(
      """
      TRUNCATE sluice.parameters;
      CREATE TABLE IF NOT EXISTS public.held (definition int, bucket_key text, id text);
      TRUNCATE public.held
      """)
    for (number, definition) in rules.definitions.enumerated() {
      for lookup in definition.lookups {
        _ = try await connection.query(
          """
          INSERT INTO sluice.parameters (lookup, source_key, key, value)
          SELECT \(number * 100 + lookup.ordinal), e.* FROM (\(lookup.evaluationAll())) e
          """)
      }
      for query in definition.queries {
        _ = try await connection.query(
          """
          INSERT INTO public.held SELECT \(number), e.bucket_key, e.object_id
          FROM (\(query.evaluationAll())) e
          """)
      }
    }
  }

  private func visible(
    _ rules: CompiledRules, _ claims: String, _ connection: PostgresConnection
  ) async throws -> Set<String> {
    var visible: Set<String> = []
    for (number, definition) in rules.definitions.enumerated() {
      for grant in definition.grants {
        let result = try await connection.query(
          """
          WITH r AS (SELECT $1::text AS claims, '{}'::text AS parameters,
            '[]'::text AS subscriptions, true AS include_defaults)
          SELECT DISTINCT h.id FROM (\(grant.sql { Int64(number * 100 + $0) })) g
          JOIN public.held h ON h.definition = \(number) AND h.bucket_key = g.bucket_key
          """, [.text(claims)])
        for row in 0..<result.rowCount { visible.insert(result.string(row, 0) ?? "?") }
      }
    }
    return visible
  }

  @Test func `a looked-up value that JSON cannot hold leads nowhere`() async throws {
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        """
        CREATE TABLE public.marks (id int PRIMARY KEY, person text, mark float8);
        CREATE TABLE public.papers (id int PRIMARY KEY, mark float8);
        INSERT INTO public.marks VALUES (1, 'ann', 'NaN'), (2, 'ann', 'Infinity'), (3, 'ann', 2),
          (4, 'ann', 0.5), (5, 'bob', NULL);
        INSERT INTO public.papers VALUES (1, 'NaN'), (2, '-Infinity'), (3, 2), (4, 0.5), (5, NULL);
        """)
      let real = CatalogType.builtIn("float8")
      let catalog = Catalog(
        tables: [("marks", ["person"]), ("papers", [])].map { name, texts in
          CatalogTable(
            schema: "public", name: name,
            columns: [CatalogColumn(name: "id", type: .builtIn("int4"))]
              + texts.map { CatalogColumn(name: $0, type: .builtIn("text")) }
              + [CatalogColumn(name: "mark", type: real)], key: ["id"])
        })
      let rules = """
        config: { edition: 3 }
        streams:
          s:
            auto_subscribe: true
            query: |
              SELECT id FROM papers
              WHERE mark IN (SELECT mark FROM marks WHERE person = auth.user_id())
        """
      let (read, _) = RulesReader.read(rules, fileName: "rules.yaml")
      let plan = PlanCompiler.compile(try #require(read), catalog).plan
      let compiled = SQLGenerator.compile(try #require(plan))
      try await materialise(compiled, connection)
      #expect(try await visible(compiled, #"{"sub":"ann"}"#, connection) == ["3", "4"])
      #expect(try await visible(compiled, #"{"sub":"bob"}"#, connection) == [])
    }
  }
}
