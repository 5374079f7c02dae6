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

  @Test func `published rejects for bucket definitions are found with their class`() throws {
    let cases = try Self.cases()["rejects"]?.elements ?? []
    var checked = 0
    for reject in cases {
      let id = reject["id"]?.string ?? ""
      // Streams are not compiled; the reader's own tests have them.
      guard !id.contains("s3-") else { continue }
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
    #expect(checked == 33)
  }

  @Test(arguments: ["clinic", "field-service", "shop", "todo-lists"])
  func `the example rules compile without findings`(name: String) throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "rules/\(name).yaml"), encoding: .utf8)
    let (rules, read) = RulesReader.read(text, fileName: "\(name).yaml")
    let found = read + PlanCompiler.compile(try #require(rules), nil).diagnostics
    #expect(found.isEmpty, "\(found.map { "\($0.code.rawValue) \($0.message)" })")
  }

  @Test func `published expressions are accepted or refused, and accepted ones run`() async throws {
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
          "bucket_definitions:\n  b:\n    data:\n      - \(quoted)\n", fileName: "rules.yaml")
        let (plan, compiled) = PlanCompiler.compile(try #require(rules), Self.catalog)
        let isAccepted = !(read + compiled).hasErrors
        let expected =
          expression["bucket_definitions"]?.string == "accept" && Self.refused[text] == nil
        #expect(isAccepted == expected, "\(text): \((read + compiled).map(\.code.rawValue))")
        guard let plan, isAccepted else { continue }
        let query = SQLGenerator.compile(plan).definitions[0].queries[0]
        _ = try await connection.query(query.evaluationAll())
      }
    }
  }
}
