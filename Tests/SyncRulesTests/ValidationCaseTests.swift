import Foundation
import SyncRules
import Testing

/// The published acceptance cases, as far as reading a file decides them.
@Suite struct ValidationCaseTests {
  struct Cases: Decodable {
    var rejects: [Case]
    var expressions: [ExpressionCase]
  }

  struct Case: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var `class`: String
    var expect: String
    var rules: String
    var testDescription: String { "\(id) (\(`class`))" }
  }

  struct ExpressionCase: Decodable, Sendable, CustomTestStringConvertible {
    var expr: String
    var inDataQueries: String
    var inStreams: String
    var testDescription: String { expr }

    enum CodingKeys: String, CodingKey {
      case expr
      case inDataQueries = "bucket_definitions"
      case inStreams = "streams_ed3"
    }
  }

  static let cases: Cases = {
    let url = Bundle.module.url(forResource: "Fixtures/validation", withExtension: "json")!
    return try! JSONDecoder().decode(Cases.self, from: Data(contentsOf: url))
  }()

  /// The classes that reading decides; the others need the typed stage.
  static let classes: Set<String> = [
    "YAML_SYNTAX", "YAML_SHAPE", "UNKNOWN_KEY", "MISSING_KEY", "MISSING_DEFINITIONS",
    "DUPLICATE_NAME", "BAD_EDITION", "BAD_OPTION", "STREAMS_NEED_EDITION", "W_ALPHA",
    "NEEDS_EDITION_3", "BUCKETS_NOT_IN_EDITION_3", "QUERY_XOR_QUERIES", "SQL_SYNTAX", "ONLY_SELECT",
    "CLAUSE", "CAST", "STAR", "JOIN_KIND", "OPERATOR", "SUBQUERY_POSITION", "NONDETERMINISTIC",
    "UNKNOWN_FUNCTION", "IN_LIST",
  ]

  @Test(
    "A published case gets its class",
    arguments: cases.rejects.filter {
      classes.contains($0.class) || $0.id == "y-frac-priority"
    })
  func published(_ test: Case) {
    let (_, diagnostics) = RulesReader.read(test.rules, fileName: "rules.yaml")
    let relevant = diagnostics.filter { $0.severity == .error || test.expect == "warn" }
    #expect(relevant.map(\.code.rawValue) == ["RULES_\(test.class)"])
    #expect(diagnostics.hasErrors == (test.expect == "reject"))
  }

  @Test(
    "A case that the typed stage decides reads without errors",
    arguments: cases.rejects.filter {
      !classes.contains($0.class) && $0.id != "y-frac-priority"
    })
  func readable(_ test: Case) throws {
    let (rules, diagnostics) = RulesReader.read(test.rules, fileName: "rules.yaml")
    #expect(diagnostics.isEmpty)
    let set = try #require(rules)
    let queries =
      set.bucketDefinitions.flatMap { $0.data + ($0.parameters ?? []) }
      + set.streams.flatMap(\.queries)
    #expect(!queries.isEmpty)
    #expect(queries.allSatisfy { $0.select != nil })
  }

  @Test("A SELECT list accepts what data queries accept", arguments: cases.expressions)
  func dataQueries(_ test: ExpressionCase) throws {
    let quoted = try yamlQuoted("SELECT id, \(test.expr) AS x FROM t")
    let rules = "bucket_definitions:\n  b:\n    data:\n      - \(quoted)\n"
    let (_, diagnostics) = RulesReader.read(rules, fileName: "rules.yaml")
    #expect(diagnostics.hasErrors == (test.inDataQueries == "reject"), "\(diagnostics)")
  }

  /// Accepted by the reference when it parses, failing for every row later; refused here.
  static let refusedEarly: Set<String> = ["a & 1", "a << 1", "substring(a from 1 for 2)"]

  @Test("A SELECT list accepts what streams accept", arguments: cases.expressions)
  func streams(_ test: ExpressionCase) throws {
    let quoted = try yamlQuoted("SELECT id, \(test.expr) AS x FROM t")
    let rules = "config:\n  edition: 3\nstreams:\n  s:\n    query: \(quoted)\n"
    let (_, diagnostics) = RulesReader.read(rules, fileName: "rules.yaml")
    let isRefused = test.inStreams == "reject" || Self.refusedEarly.contains(test.expr)
    #expect(diagnostics.hasErrors == isRefused, "\(diagnostics)")
  }

  private func yamlQuoted(_ text: String) throws -> String {
    String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
  }
}
