import Foundation
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// The published cases of what is refused, and of which expressions are accepted.
@Suite struct ValidationCasesTests {
  /// Expressions that the reference accepts and this version refuses.
  static let refused: [String: String] = [
    "st_x(a)": "geometry needs a WKB reader; refused with a remedy"
  ]

  private static let catalog = Catalog(
    tables: ["t", "p", "z"].map { name in
      let columns = ["id", "a", "b", "o", "u", "x", "n", "name"].map {
        CatalogColumn(name: $0, type: .builtIn("text"))
      }
      return CatalogTable(schema: "public", name: name, columns: columns, key: ["id"])
    })

  private static func cases() throws -> CaseValue {
    try CaseValue.file("validation.json", in: "SyncRulesTests/Fixtures")
  }

  @Test func `published rejects are found with their class`() throws {
    let cases = try Self.cases()["rejects"]?.elements ?? []
    var checked = 0
    for reject in cases {
      let id = reject["id"]?.string ?? ""
      checked += 1
      let (rules, read) = RulesReader.read(reject["rules"]?.string ?? "", fileName: "rules.yaml")
      var found = read
      if let rules { found += PlanCompiler.compile(rules, Self.catalog).diagnostics }
      let code = "RULES_" + (reject["class"]?.string ?? "")
      let severity: Diagnostic.Severity = reject["expect"]?.string == "warn" ? .warning : .error
      #expect(
        found.contains { $0.code.rawValue == code && $0.severity == severity },
        "\(id): \(found.map(\.code.rawValue))")
    }
    #expect(checked == 50)
  }

  @Test(arguments: ["clinic", "field-service", "projects", "shop", "todo-lists"])
  func `the example rules compile without findings`(name: String) throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "rules/\(name).yaml"), encoding: .utf8)
    let (rules, read) = RulesReader.read(text, fileName: "\(name).yaml")
    let found = read + PlanCompiler.compile(try #require(rules), nil).diagnostics
    #expect(found.isEmpty, "\(found.map { "\($0.code.rawValue) \($0.message)" })")
  }

  /// Expressions that the reference accepts in streams, and that fail there for every row; refused here.
  static let refusedInStreams: Set<String> = ["a & 1", "a << 1", "substring(a from 1 for 2)"]

  @Test(arguments: ["bucket_definitions", "streams_ed3"])
  func `published expressions are accepted or refused, and accepted ones run`(
    dialect: String
  ) async throws {
    let isStream = dialect == "streams_ed3"
    let cases = try Self.cases()["expressions"]?.elements ?? []
    try #require(cases.count > 40)
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        """
        CREATE TABLE public.t (id text PRIMARY KEY, a text, b text);
        INSERT INTO public.t VALUES ('1', '[1]', '2'), ('2', 'x', NULL), ('3', NULL, '');
        """)
      for expression in cases {
        let text = expression["expr"]?.string ?? ""
        let quoted = CaseValue.quoted("SELECT id, \(text) AS v FROM t")
        let (rules, read) = RulesReader.read(
          isStream
            ? "config: {edition: 3}\nstreams:\n  s:\n    query: \(quoted)\n"
            : "bucket_definitions:\n  b:\n    data:\n      - \(quoted)\n", fileName: "rules.yaml")
        let (plan, compiled) = PlanCompiler.compile(try #require(rules), Self.catalog)
        let isAccepted = !(read + compiled).hasErrors
        let isRefused =
          Self.refused[text] != nil || isStream && Self.refusedInStreams.contains(text)
        let expected = expression[dialect]?.string == "accept" && !isRefused
        #expect(isAccepted == expected, "\(text): \((read + compiled).map(\.code.rawValue))")
        guard let plan, isAccepted else { continue }
        let definition = try #require(
          SQLGenerator.compile(plan).definitions.first, "\(text): a query with errors is left out")
        _ = try await connection.query(definition.queries[0].evaluationAll())
      }
    }
  }
}
