import SyncRules
import Testing

/// Findings about rules that are allowed, and do not do what their author expects.
@Suite struct LintTests {
  private static let catalog = Catalog(tables: [
    table(
      "cards",
      ["id": "int4", "owner": "int4", "title": "text", "price": "numeric", "hidden": "bool"]),
    table(
      "notes",
      ["id": "uuid", "owner": "text", "at": "timestamptz", "day": "date", "local": "timestamp"]),
    table("members", ["id": "int4", "person": "text", "team": "int4"]),
    table("sites", ["id": "int4", "person": "text", "site": "text"]),
    table("plans", ["id": "int4", "team": "int4", "site": "text"]),
  ])

  private static func table(_ name: String, _ columns: [String: String]) -> CatalogTable {
    CatalogTable(
      schema: "public", name: name,
      columns: columns.sorted { $0.key < $1.key }.map { name, type in
        CatalogColumn(name: name, type: .builtIn(type), notNull: name == "id")
      }, key: ["id"])
  }

  private func findings(_ yaml: String) throws -> [String] {
    let (rules, read) = RulesReader.read(yaml, fileName: "rules.yaml")
    let (plan, found) = PlanCompiler.compile(try #require(rules), Self.catalog)
    #expect(read.isEmpty)
    #expect(plan != nil)
    return found.map { "\($0.code.rawValue.dropFirst("RULES_".count)): \($0.message)" }
  }

  private func condition(_ condition: String, edition: Int = 2) throws -> [String] {
    let table =
      condition.contains("title") || condition.contains("price") || condition.contains("hidden")
        || condition.contains("owner = ") ? "cards" : "notes"
    let query = "SELECT id FROM \(table) WHERE \(condition)"
    let body =
      edition == 3
      ? "streams: {all: {auto_subscribe: true, query: \"\(query)\"}}"
      : "bucket_definitions: {all: {data: [\"\(query)\"]}}"
    return try findings("config: {edition: \(edition)}\n\(body)\n")
  }

  @Test(
    "A constant of another class than the column is pointed at", arguments: [2, 3])
  func classes(edition: Int) throws {
    for (text, finding) in [
      ("title = 5", "W_CLASS: title is a text: it never equals a number"),
      ("5 < title", "W_CLASS: title is a text: it never equals a number"),
      ("owner = '5'", "W_CLASS: owner is a number: it never equals the text '5'"),
      ("hidden = 'true'", "W_CLASS: hidden is 1 or 0: it never equals the text 'true'"),
      ("price = 5", "W_NUMERIC: price is numeric and therefore text: it never equals a number"),
    ] { #expect(try condition(text, edition: edition) == [finding], "\(text)") }
    for text in [
      "title = '5'", "owner = 5", "owner = 5.0", "hidden = true", "NOT hidden", "price = '5.00'",
      "CAST(price AS real) > 5", "title > 'a'", "owner > 3 AND title IS NULL",
    ] { #expect(try condition(text, edition: edition) == [], "\(text)") }
  }

  @Test("A time in another form than the column's is pointed at, a beginning of it is none")
  func times() throws {
    for text in [
      "at > '2026-03-01 08:00:00'", "at = '2026-03-01T08:00:00'", "day = '1.3.2026'",
      "day > '2026-03-01T00:00:00'",
      "local < '2026-03-01T08:00:00.000000Z'", "at > 'yesterday'",
    ] {
      let found = try condition(text)
      #expect(found.count == 1, "\(text)")
      #expect(found.first?.hasPrefix("W_TIME_FORMAT") == true, "\(text)")
    }
    for text in [
      "at > '2026'", "at > '2026-03-01'", "at > '2026-03-01T08:00'",
      "at = '2026-03-01T08:00:00.000000Z'",
      "day = '2026-03-01'", "at >= '2026-03-01T08:00:00'", "local < '2026-03-01T08:00:00.5'",
      "local > '2026-03'",
    ] { #expect(try condition(text) == [], "\(text)") }
    let old =
      "bucket_definitions: {all: {data: [\"SELECT id FROM notes WHERE at > '2026-03-01 08:00:00Z'\"]}}"
    #expect(try findings(old) == [])
  }

  @Test("A user's id, which is a text, does not meet an integer column")
  func userIDs() throws {
    let message =
      "W_CLASS: cards.owner never equals request.user_id(): cards.owner is a number, "
      + "request.user_id() is a text"
    #expect(
      try findings(
        """
        config: {edition: 2}
        bucket_definitions:
          mine:
            parameters: SELECT request.user_id() AS user
            data: [SELECT id FROM cards WHERE owner = bucket.user]
        """) == [message])
    #expect(
      try findings(
        """
        config: {edition: 3}
        streams:
          mine: {query: SELECT id FROM cards WHERE owner = auth.user_id()}
        """) == [message])
    #expect(
      try findings(
        """
        config: {edition: 3}
        streams:
          mine: {query: SELECT id FROM cards WHERE CAST(owner AS text) = auth.user_id()}
        """) == [])
    #expect(
      try findings(
        """
        config: {edition: 2}
        bucket_definitions:
          by_person:
            parameters: SELECT person FROM members WHERE team = request.user_id()
            data: [SELECT id FROM cards WHERE owner = bucket.person]
        """) == [
          "W_CLASS: cards.owner never equals members.person: cards.owner is a number, "
            + "members.person is a text",
          "W_CLASS: members.team never equals request.user_id(): members.team is a number, "
            + "request.user_id() is a text",
        ])
  }

  @Test("Two lists that have nothing to do with each other multiply")
  func products() throws {
    let found = try findings(
      """
      config: {edition: 3}
      streams:
        plans:
          query: |
            SELECT id FROM plans WHERE team IN (SELECT team FROM members WHERE person = auth.user_id())
              AND site IN (SELECT site FROM sites WHERE person = auth.user_id())
      """)
    #expect(
      found == [
        "W_PRODUCT: a user has a bucket for each of his rows of members with each of his rows of sites"
      ])
    // One leads to the other: no product.
    #expect(
      try findings(
        """
        config: {edition: 3}
        streams:
          plans:
            query: |
              SELECT id FROM plans WHERE site IN (
                SELECT sites.site FROM sites JOIN members ON members.person = sites.person
                WHERE members.person = auth.user_id())
        """) == [])
  }

  @Test("Without a database nothing is said about types")
  func withoutCatalog() throws {
    let yaml = "bucket_definitions: {all: {data: ['SELECT id FROM cards WHERE title = 5']}}"
    let (rules, _) = RulesReader.read(yaml, fileName: "rules.yaml")
    #expect(PlanCompiler.compile(try #require(rules), nil).diagnostics == [])
  }
}
