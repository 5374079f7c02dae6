import SyncRules
import Testing

/// What is told of the difference between two rules files, each small enough to tell it by reading.
@Suite struct PlanComparisonTests {
  private static let catalog = Catalog(
    tables: [
      table("members", ["id", "person", "team", "active"]),
      table("cards", ["id", "team", "title", "price", "hidden"]),
    ])

  private static func table(_ name: String, _ columns: [String]) -> CatalogTable {
    CatalogTable(
      schema: "public", name: name,
      columns: columns.map { CatalogColumn(name: $0, type: .builtIn("text"), notNull: $0 == "id") },
      key: ["id"])
  }

  private static func rules(
    parameters: String = "SELECT team FROM members WHERE person = request.user_id() AND active",
    data: String = "SELECT id, title FROM cards WHERE team = bucket.team AND NOT hidden",
    priority: Int = 3, more: String = ""
  ) -> String {
    """
    config: {edition: 2}
    bucket_definitions:
      team:
        priority: \(priority)
        parameters: \(parameters)
        data: ['\(data)']
    \(more)
    """
  }

  private func changes(
    _ old: String, _ new: String, of name: String = "team"
  ) throws -> [String] {
    let plans = try [old, new].map { text in
      let (rules, _) = RulesReader.read(text, fileName: "rules.yaml")
      let (plan, found) = PlanCompiler.compile(try #require(rules), Self.catalog)
      #expect(found.filter { $0.severity == .error } == [])
      return try #require(plan)
    }
    return PlanComparison(from: plans[0], to: plans[1]).changes(of: name)
      .map { ($0.widens ? "! " : "") + $0.text }
  }

  @Test("nothing is said of rules that are written in another way only")
  func same() throws {
    let other = Self.rules(
      parameters:
        "select members.team from members where active and request.user_id() = members.person",
      data: "select id, title from cards where not cards.hidden and bucket.team = cards.team")
    #expect(try changes(Self.rules(), other) == [])
  }

  @Test("requirements that go, columns that come and tables that come let more through")
  func wider() throws {
    let base = Self.rules()
    #expect(
      try changes(
        base, Self.rules(data: "SELECT id, title FROM cards WHERE team = bucket.team"))
        == ["! cards: no longer requires NOT hidden"])
    #expect(
      try changes(
        base,
        Self.rules(
          data: "SELECT id, title, price FROM cards WHERE team = bucket.team AND NOT hidden"))
        == ["! cards: column price is new"])
    #expect(
      try changes(
        base, Self.rules(parameters: "SELECT team FROM members WHERE person = request.user_id()"))
        == ["! who gets it: no longer requires active in members"])
    #expect(
      try changes(
        base,
        Self.rules(
          data: "SELECT id, title FROM cards WHERE team = bucket.team AND NOT hidden','"
            + "SELECT id, person FROM members WHERE team = bucket.team"))
        == ["! rows of members come as members"])
    #expect(
      try changes(
        base,
        Self.rules(
          data:
            "SELECT id, upper(title) AS title FROM cards WHERE team = bucket.team AND NOT hidden"
        )) == ["! cards: column title is now upper(title)"])
  }

  @Test("requirements that come and columns that go let less through")
  func narrower() throws {
    let base = Self.rules()
    #expect(
      try changes(
        base,
        Self.rules(
          data: "SELECT id FROM cards WHERE team = bucket.team AND NOT hidden AND price IS NULL",
          priority: 1))
        == [
          "priority 3 becomes 1", "cards: column title is gone",
          "cards: now requires price IS NULL",
        ])
    #expect(
      try changes(
        Self.rules(
          data: "SELECT id, title FROM cards WHERE team = bucket.team AND NOT hidden','"
            + "SELECT id, person FROM members WHERE team = bucket.team"), base)
        == ["rows of members no longer come as members"])
  }

  @Test("a new definition says who is given it, everybody first of all")
  func added() throws {
    func added(_ parameters: String, _ data: String) throws -> [String] {
      let more =
        "  extra:\n    accept_potentially_dangerous_queries: true\n"
        + (parameters.isEmpty ? "" : "    parameters: \(parameters)\n") + "    data: ['\(data)']"
      return try changes(Self.rules(), Self.rules(more: more), of: "extra")
    }
    #expect(try added("", "SELECT id FROM cards") == ["! given to everybody"])
    #expect(
      try added("SELECT WHERE request.jwt() ->> 'role' = 'boss'", "SELECT id FROM cards")
        == ["! given where request.jwt() ->> 'role' = 'boss'"])
    #expect(
      try added(
        "SELECT request.parameters() ->> 'team' AS team",
        "SELECT id FROM cards WHERE team = bucket.team")
        == [
          "! given to everybody who asks: bucket.team = request.parameters() ->> 'team'"
        ])
    #expect(try changes(Self.rules(), Self.rules(), of: "extra") == [])
  }
}
