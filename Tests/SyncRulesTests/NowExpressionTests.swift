import SyncRules
import Testing

/// `now()` in conditions: where it may stand, and what it becomes.
@Suite struct NowExpressionTests {
  private static let catalog = Catalog(tables: [
    CatalogTable(
      schema: "public", name: "t",
      columns: [
        ("id", "int4"), ("at", "timestamptz"), ("local", "timestamp"), ("day", "date"),
        ("n", "int4"),
        ("s", "text"),
      ].map { CatalogColumn(name: $0, type: .builtIn($1), notNull: $0 == "id") }, key: ["id"])
  ])

  private func compile(
    _ condition: String, edition: Int = 2
  ) throws -> (conditions: [String], findings: [String]) {
    let query = "SELECT id FROM t WHERE \(condition)"
    let body =
      edition == 3
      ? "streams: {all: {auto_subscribe: true, query: \"\(query)\"}}"
      : "bucket_definitions: {all: {data: [\"\(query)\"]}}"
    let (rules, read) = RulesReader.read(
      "config: {edition: \(edition)}\n\(body)\n", fileName: "rules.yaml")
    let (plan, found) = PlanCompiler.compile(try #require(rules), Self.catalog)
    let branches = plan?.definitions.flatMap { $0.queries.flatMap(\.branches) } ?? []
    return (
      branches.flatMap { $0.conditions.map(\.ruleText) },
      (read + found).filter { $0.severity == .error }.map(\.code.rawValue)
    )
  }

  @Test("what may be written, and how it is read", arguments: [2, 3])
  func accepted(edition: Int) throws {
    for (text, meaning) in [
      ("at > now()", "at > now()"), ("now() > at", "at < now()"), ("day <= NOW()", "day <= now()"),
      ("at > now() - interval '90 days'", "at > now() - interval '90 days'"),
      ("now() - interval '36 hours' <= local", "local >= now() - interval '36 hours'"),
      ("at < now() + interval '1 week'", "at < now() + interval '7 days'"),
      ("at > now() - interval '1 day 12 hours'", "at > now() - interval '36 hours'"),
      ("at > now() - interval '1 day' + interval '1 hour'", "at > now() - interval '23 hours'"),
      ("at + interval '1 day' > now()", "at > now() - interval '1 day'"),
      ("at - interval '90 seconds' >= now()", "at >= now() + interval '90 seconds'"),
    ] {
      let (conditions, findings) = try compile(text, edition: edition)
      #expect(findings == [], "\(text)")
      #expect(conditions == [meaning], "\(text)")
    }
  }

  @Test("what may not is refused, each with its code", arguments: [2, 3])
  func refused(edition: Int) throws {
    for (text, code) in [
      ("at = now()", "RULES_NOW"), ("at != now()", "RULES_NOW"), ("n > now()", "RULES_NOW"),
      ("s > now()", "RULES_NOW"), ("upper(s) > now()", "RULES_NOW"), ("5 > now()", "RULES_NOW"),
      ("now() > now()", "RULES_NOW"), ("at > now(3)", "RULES_NOW"),
      ("at > now() - interval '1 month'", "RULES_NOW"),
      ("at > now() - interval 'soon'", "RULES_NOW"),
      ("at > now() - interval ''", "RULES_NOW"), ("at > now() - interval '1.5 days'", "RULES_NOW"),
      ("at > now() - interval '9999999999999999999 days'", "RULES_NOW"),
      ("at > now() - 5", "RULES_NOW"),
      ("at > interval '1 day'", "RULES_NOW"), ("now() IS NOT NULL", "RULES_UNKNOWN_FUNCTION"),
      ("upper(now()) = 'x'", "RULES_UNKNOWN_FUNCTION"),
    ] {
      let (_, findings) = try compile(text, edition: edition)
      #expect(Set(findings) == [code], "\(text)")
    }
  }

  @Test("BETWEEN takes a moment on either side in streams")
  func between() throws {
    #expect(try compile("at BETWEEN now() - interval '1 day' AND now()", edition: 3).findings == [])
    #expect(try compile("now() BETWEEN local AND at", edition: 3).findings == [])
    #expect(try compile("at BETWEEN now() AND '2026'", edition: 3).findings == [])
  }

  @Test("a value that is selected does not depend on the time")
  func selected() throws {
    for text in ["now() AS x", "interval '1 day' AS x"] {
      let yaml = "bucket_definitions: {all: {data: [\"SELECT id, \(text) FROM t\"]}}"
      #expect(RulesReader.read(yaml, fileName: "rules.yaml").diagnostics.hasErrors)
    }
  }
}
