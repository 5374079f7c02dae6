import SyncRules
import Testing

/// What streams are compiled to, and what is found wrong with them where.
@Suite struct StreamCompilerTests {
  private static let catalog = Catalog(
    tables: [
      ("tasks", ["id", "team", "owner", "helper", "open", "tags"]),
      ("members", ["id", "team", "person"]),
      ("teams", ["id", "org"]), ("log_2024", ["id", "line"]), ("log_2025", ["id", "line"]),
    ].map { name, columns in
      CatalogTable(
        schema: "public", name: name,
        columns: columns.map { CatalogColumn(name: $0, type: .builtIn("text")) }, key: ["id"])
    })

  private func compile(
    _ streams: String, edition: Int = 3
  ) throws -> (plan: SyncPlan?, diagnostics: [Diagnostic]) {
    let text = "config: { edition: \(edition) }\n" + streams
    let (rules, read) = RulesReader.read(text, fileName: "rules.yaml")
    let (plan, found) = PlanCompiler.compile(try #require(rules), Self.catalog)
    return (plan, read + found)
  }

  private func definitions(_ queries: String...) throws -> [PlanDefinition] {
    let list = queries.map { "      - \($0)\n" }.joined()
    let compiled = try compile("streams:\n  s:\n    queries:\n\(list)")
    return try #require(compiled.plan, "\(compiled.diagnostics)").definitions
  }

  // MARK: Plans

  @Test func `a chain is followed from the request outward, whatever the order of the text`()
    throws
  {
    let texts = [
      "SELECT tasks.id FROM tasks JOIN teams ON teams.id = tasks.team JOIN members ON "
        + "members.team = teams.org WHERE members.person = auth.user_id()",
      "SELECT tasks.id FROM members, teams, tasks WHERE auth.user_id() = members.person AND "
        + "teams.org = members.team AND tasks.team = teams.id",
      "SELECT id FROM tasks WHERE team IN (SELECT id FROM teams WHERE org IN "
        + "(SELECT team FROM members WHERE person = auth.user_id()))",
    ]
    for text in texts {
      let definition = try #require(try definitions(text).first)
      #expect(
        definition.grants.map(\.steps) == [
          [.lookup(0, key: [.userID]), .lookup(1, key: [.found(step: 0, value: 0)])]
        ])
      #expect(definition.grants.map(\.outputs) == [[[.found(step: 1, value: 0)]]])
    }
    // All three reach the same keys, so one stream with all of them has one kind of bucket.
    let all = try definitions(texts[0], texts[1], texts[2])
    #expect(all.count == 1)
    #expect(all.first?.queries.map(\.branches.count) == [1])
  }

  @Test func `queries that reach the same keys share their buckets, in whatever order they say it`()
    throws
  {
    let all = try definitions(
      "SELECT id FROM tasks WHERE team = connection.parameter('t') AND owner = auth.user_id()",
      "SELECT id FROM members WHERE auth.user_id() = person AND connection.parameter('t') = team",
      "SELECT id FROM teams WHERE id = connection.parameter('t')")
    #expect(all.map(\.name) == ["s|0", "s|1"])
    #expect(all.map { $0.queries.map(\.outputName) } == [["tasks", "members"], ["teams"]])
    #expect(all.map(\.parameters.count) == [2, 1])
  }

  @Test func `alternatives about the row alone are one condition, others have a bucket each`()
    throws
  {
    let all = try definitions(
      "SELECT id FROM tasks WHERE owner = auth.user_id() OR open = '1' OR helper = auth.user_id() "
        + "OR team IS NULL")
    #expect(all.count == 2)
    // By the user: two ways into the same bucket. By the row alone: one.
    #expect(all.map { $0.grants[0].outputs.count } == [1, 0])
    #expect(all.map { $0.queries.map(\.branches.count) } == [[2], [1]])
  }

  @Test func `a column that two things are equal to is one place, where both must agree`() throws {
    let all = try definitions(
      "SELECT id FROM tasks WHERE team = connection.parameter('t') AND team IN "
        + "(SELECT team FROM members WHERE person = auth.user_id())")
    #expect(all.map(\.parameters.count) == [1])
    #expect(all.first?.grants.first?.outputs.map(\.count) == [2])
  }

  @Test func `a wildcard has a query for each table, in the same bucket`() throws {
    let all = try definitions("SELECT id, logs.table_suffix() AS year FROM \"log_%\" AS logs")
    #expect(all.count == 1)
    #expect(all.first?.queries.map(\.columns.last?.value) == [.text("2024"), .text("2025")])
  }

  @Test func `a wildcard that is looked up is a way for each table to the same bucket`() throws {
    let all = try definitions(
      "SELECT id FROM tasks WHERE id IN (SELECT l.line FROM \"log_%\" AS l "
        + "WHERE l.id = auth.user_id())")
    #expect(all.map(\.lookups.count) == [2])
    #expect(
      all.map { $0.grants.map(\.steps) } == [
        [[.lookup(0, key: [.userID])], [.lookup(1, key: [.userID])]]
      ])
    #expect(all.map(\.queries.count) == [1])
  }

  @Test func `the rows may come through a subquery in FROM or a query of with`() throws {
    let compiled = try compile(
      """
      with:
        opened: SELECT id, team AS group_id FROM tasks WHERE open = '1'
      streams:
        s:
          queries:
            - SELECT * FROM opened WHERE group_id = auth.parameter('team')
            - SELECT s.a AS id FROM (SELECT id, org FROM teams) AS s (a, b) WHERE s.b = auth.user_id()
      """)
    #expect(compiled.diagnostics == [])
    let queries = try #require(compiled.plan).definitions.flatMap(\.queries)
    #expect(queries.map(\.outputName) == ["tasks", "teams"])
    #expect(queries.map { $0.columns.map(\.name) } == [["id", "group_id"], ["id"]])
    #expect(queries[0].branches.map(\.conditions.count) == [1])
  }

  @Test func `a hundred alternatives are accepted, and one more is not`() throws {
    func query(_ left: Int, _ right: Int) -> String {
      func either(_ count: Int, _ column: String) -> String {
        (0..<count).map { "\(column) = auth.parameter('\(column)\($0)')" }
          .joined(separator: " OR ")
      }
      return "SELECT id FROM tasks WHERE (\(either(left, "owner"))) AND (\(either(right, "team")))"
    }
    #expect(try definitions(query(10, 10)).count == 100)
    let compiled = try compile("streams:\n  s:\n    query: \(query(101, 1))\n")
    #expect(compiled.diagnostics.map(\.code) == [.tooManyTerms])
    #expect(compiled.plan == nil)
  }

  @Test func `edition 2 reads the priority and leaves it, edition 3 applies it`() throws {
    let text = "streams:\n  s:\n    priority: 1\n    query: SELECT id FROM tasks\n"
    #expect(try compile(text).plan?.definitions.map(\.priority) == [1])
    #expect(try compile(text, edition: 2).plan?.definitions.map(\.priority) == [3])
  }

  // MARK: Findings

  struct Finding: Sendable, CustomTestStringConvertible {
    var code: DiagnosticCode
    var query: String
    var testDescription: String { "\(code.rawValue): \(query)" }

    init(_ code: DiagnosticCode, _ query: String) {
      self.code = code
      self.query = query
    }
  }

  static let findings = [
    Finding(.crossTable, "SELECT id FROM tasks WHERE ⟦owner != auth.user_id()⟧"),
    Finding(.crossTable, "SELECT id FROM tasks WHERE NOT ⟦(owner = auth.user_id())⟧"),
    Finding(.crossTable, "SELECT id FROM tasks WHERE ⟦owner || auth.user_id()⟧ = 'x'"),
    Finding(.crossTable, "SELECT id FROM tasks WHERE ⟦owner NOT IN auth.parameter('x')⟧"),
    Finding(.crossTable, "SELECT id FROM tasks WHERE ⟦owner NOT IN mine⟧ AND team IN mine"),
    Finding(.crossTable, "SELECT id FROM tasks WHERE NOT ⟦(tags && auth.parameter('x'))⟧"),
    Finding(
      .crossTable, "SELECT tasks.id FROM tasks JOIN teams ON ⟦teams.id < tasks.team⟧"),
    Finding(.oneOutputTable, "SELECT tasks.id, ⟦teams.org⟧ FROM tasks JOIN teams ON true"),
    Finding(.oneOutputTable, "SELECT ⟦*⟧ FROM tasks JOIN teams ON teams.id = tasks.team"),
    Finding(.oneOutputTable, "SELECT ⟦e.value⟧ FROM json_each(auth.parameter('x')) AS e"),
    Finding(.oneOutputTable, "⟦SELECT 1 AS id FROM tasks⟧"),
    Finding(.requestInData, "SELECT id, ⟦auth.user_id() AS me⟧ FROM tasks"),
    Finding(.ambiguousColumn, "SELECT tasks.id FROM tasks, teams WHERE ⟦org⟧ = 'x'"),
    Finding(.unknownTable, "SELECT id FROM tasks WHERE ⟦task⟧.team = 'x'"),
    Finding(.duplicateAlias, "SELECT tasks.id FROM tasks, ⟦teams AS tasks⟧"),
    Finding(
      .subqueryColumns, "SELECT id FROM tasks WHERE team IN (⟦SELECT id, org FROM teams⟧)"),
    Finding(
      .subqueryColumns,
      "SELECT tasks.id FROM tasks, (SELECT id FROM teams) AS x (⟦a⟧, b) WHERE x.a = tasks.team"),
    Finding(
      .subqueryColumns,
      "SELECT tasks.id FROM tasks, (SELECT id FROM teams) AS x WHERE ⟦x.org⟧ = tasks.team"),
    Finding(
      .subqueryColumns, "SELECT tasks.id FROM tasks, ⟦(SELECT id, org AS id FROM teams) AS x⟧"),
    Finding(
      .elementsInput,
      "SELECT tasks.id FROM tasks, json_each(tasks.tags) AS a, ⟦json_each(a.value)⟧ AS b"),
    Finding(.unknownTVF, "SELECT tasks.id FROM tasks, ⟦json_tree(tasks.tags)⟧ AS b"),
    Finding(.inList, "SELECT id FROM tasks WHERE ⟦team IN ('x')⟧"),
    Finding(.metadata, "SELECT tasks.id FROM tasks, mine WHERE ⟦mine.schema()⟧ = 'x'"),
    Finding(.subqueryPosition, "SELECT id, team IN (⟦SELECT id FROM teams⟧) AS x FROM tasks"),
    Finding(.dynamicArgument, "SELECT id FROM tasks WHERE owner = ⟦auth.parameter(1)⟧"),
    Finding(.warnSuffix, "SELECT id, ⟦tasks.table_suffix()⟧ AS x FROM tasks"),
    Finding(.warnAlias, "SELECT id, ⟦upper(team)⟧ FROM tasks"),
    Finding(.warnStarOrder, "SELECT upper(team) AS team, ⟦*⟧ FROM tasks"),
    Finding(.warnJoinAlias, "SELECT x.id FROM tasks AS ⟦x⟧, mine WHERE mine.team = x.team"),
    Finding(.warnDangerous, "⟦SELECT id FROM tasks WHERE owner = connection.parameter('o')⟧"),
    Finding(
      .warnDangerous,
      "⟦SELECT id FROM tasks WHERE owner = connection.parameter('o') AND auth.user_id() = 'x'⟧"),
    Finding(.missingID, "⟦SELECT team FROM tasks⟧"),
    Finding(.warnColumn, "SELECT id FROM tasks WHERE ⟦oven⟧ = 'x'"),
    Finding(
      .warnReadWhole,
      "SELECT tasks.id FROM tasks JOIN ⟦teams⟧ ON teams.id = tasks.team WHERE "
        + "tasks.owner = auth.user_id()"),
    Finding(.warnTable, "SELECT id FROM tasks WHERE team IN (SELECT id FROM ⟦groups⟧)"),
  ]

  @Test("A query has one finding, exactly where it is", arguments: findings)
  func finding(_ finding: Finding) throws {
    let source = MarkedText(finding.query)
    let head = "config: { edition: 3 }\nstreams:\n  used:\n    query: "
    let mine =
      "SELECT tasks.id FROM tasks, mine WHERE mine.team = tasks.team\n  s:\n    query: |\n      "
    let with = "\nwith:\n  mine: SELECT team FROM members WHERE person = auth.user_id()\n"
    let text = head + mine + source.text + with
    let (rules, read) = RulesReader.read(text, fileName: "rules.yaml")
    let found = read + PlanCompiler.compile(try #require(rules), Self.catalog).diagnostics
    #expect(found.map(\.code) == [finding.code], "\(found)")
    let file = SourceFile(name: "rules.yaml", text: text)
    #expect(
      found.first?.span.map(file.text(of:))
        == SourceFile(name: "", text: source.text).text(of: source.span))
    let isWarning = finding.code.rawValue.contains("_W_") || finding.code == .missingID
    #expect(found.first?.severity == (isWarning ? .warning : .error))
  }

  @Test func `a query of with is checked once, whether it is used or not`() throws {
    let bad = try compile(
      """
      with:
        one: SELECT nothing.team FROM members
        members: SELECT team FROM public.members WHERE person = auth.user_id()
      streams:
        s:
          query: SELECT id FROM tasks WHERE team IN members AND team IN one
      """)
    #expect(bad.diagnostics.map(\.code) == [.unknownTable, .warnShadow])
    let unused = try compile(
      """
      with:
        one: SELECT nothing.team FROM members
      streams:
        s:
          with:
            two: SELECT id FROM teams
          query: SELECT id FROM tasks
      """)
    #expect(unused.diagnostics.map(\.code) == [.warnUnusedQuery, .unknownTable, .warnUnusedQuery])
  }

  @Test func `a stream that everybody has warns of parameters that nobody then gives`() throws {
    let compiled = try compile(
      """
      streams:
        s:
          auto_subscribe: true
          accept_potentially_dangerous_queries: true
          query: SELECT id FROM tasks WHERE team = subscription.parameter('team')
      """)
    #expect(compiled.diagnostics.map(\.code) == [.warnAutoParams])
    #expect(compiled.plan != nil)
  }

  @Test(
    "Edition 2 refuses what only edition 3 has",
    arguments: [
      "SELECT id FROM tasks WHERE team NOT IN (SELECT team FROM members)",
      "SELECT id FROM tasks WHERE team IN (SELECT id FROM teams)",
      "SELECT id FROM tasks WHERE team IN (SELECT team FROM members WHERE person = auth.user_id() "
        + "OR team = 'x')",
      "SELECT id FROM tasks WHERE team IN (SELECT id FROM teams WHERE org IN (SELECT team FROM "
        + "members WHERE person = auth.user_id()))",
      "SELECT id FROM tasks WHERE 'x' IN auth.parameter('x')",
    ])
  func alpha(_ query: String) throws {
    let text = "streams:\n  s:\n    query: \(query)\n"
    let codes = try compile(text, edition: 2).diagnostics.map(\.code)
    #expect(codes == [.warnAlpha, .alphaStream])
    #expect(try compile(text).diagnostics.allSatisfy { $0.code != .alphaStream })
  }

  @Test func `a definition may not have the name of a stream's buckets`() throws {
    let compiled = try compile(
      """
      bucket_definitions:
        s|0:
          data: [SELECT * FROM tasks]
      streams:
        s:
          query: SELECT id FROM teams
      """, edition: 2)
    #expect(compiled.diagnostics.filter { $0.severity == .error }.map(\.code) == [.duplicateName])
  }
}
