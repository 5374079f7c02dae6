import SyncRules
import Testing

/// Findings about single queries point at the words that cause them.
@Suite struct QueryShapeTests {
  private func data(_ sql: String) -> String {
    "bucket_definitions:\n  b:\n    data:\n      - |\n        \(sql)\n"
  }

  private func parameters(_ sql: String) -> String {
    "bucket_definitions:\n  b:\n    parameters: |\n      \(sql)\n    data: []\n"
  }

  private func stream(_ sql: String) -> String {
    "config: { edition: 3 }\nstreams:\n  s:\n    query: |\n      \(sql)\n"
  }

  @Test(
    "Data queries",
    arguments: [
      (DiagnosticCode.singleTable, "SELECT t.id FROM t ⟦JOIN z ON z.id = t.o⟧"),
      (.singleTable, "SELECT id FROM t, ⟦z⟧"),
      (.singleTable, "⟦SELECT id⟧"),
      (.singleTable, "SELECT id FROM ⟦json_each(a)⟧"),
      (.subqueryPosition, "SELECT id FROM (⟦SELECT id FROM t⟧) AS s"),
      (.subqueryPosition, "SELECT id FROM t WHERE a IN (⟦SELECT id FROM z⟧)"),
      (.subqueryPosition, "SELECT id FROM t WHERE ⟦EXISTS⟧ (SELECT id FROM z)"),
      (.clause, "SELECT id FROM t ⟦GROUP⟧ BY id"),
      (.clause, "SELECT ⟦DISTINCT⟧ id FROM t"),
      (.clause, "SELECT id FROM t ⟦FOR⟧ UPDATE"),
      (.oneSelect, "SELECT id FROM t; ⟦SELECT⟧ id FROM z"),
      (.onlySelect, "SELECT id FROM t ⟦UNION⟧ SELECT id FROM z"),
      (.onlySelect, "⟦WITH⟧ a AS (SELECT 1) SELECT id FROM a"),
      (.sqlSyntax, "SELECT id FROM t WHERE ⟦)⟧"),
      (.sqlSyntax, "SELECT id FROM ⟦user⟧"),
      (.sqlSyntax, "SELECT id FROM t WHERE a = ⟦1e3⟧"),
      (.sqlSyntax, "SELECT id FROM t WHERE a = ⟦$1⟧"),
      (.sqlSyntax, "SELECT id FROM t WHERE a = ⟦:name⟧"),
      (.sqlSyntax, "SELECT id FROM t WHERE a = ⟦'⟧it"),
      (.sqlSyntax, "SELECT id FROM t WHERE a = ⟦date⟧ '2024-01-01'"),
      (.sqlSyntax, "SELECT id FROM t ⟦/*⟧ x"),
      (.sqlSyntax, "SELECT id FROM t WHERE a = ⟦{⟧"),
      (.unsupportedOperator, "SELECT id FROM t WHERE ⟦a % 2⟧ = 1"),
      (.unsupportedOperator, "SELECT id FROM t WHERE a NOT ⟦LIKE⟧ 'x%'"),
      (.unsupportedOperator, "SELECT id FROM t WHERE a ⟦@>⟧ 'x'"),
      (.unsupportedOperator, "SELECT id FROM t WHERE a ⟦COLLATE⟧ \"C\" = 'x'"),
      (.unsupportedOperator, "SELECT id, a⟦[1]⟧ AS x FROM t"),
      (.unsupportedOperator, "SELECT id FROM t WHERE a = ⟦-b⟧"),
      (.unsupportedOperator, "SELECT id FROM t WHERE bucket.p IN ⟦('a', 'b')⟧"),
      (.unsupportedOperator, "SELECT id, ⟦CASE WHEN a THEN 1 END⟧ AS x FROM t"),
      (.unknownFunction, "SELECT id, ⟦coalesce(a, b)⟧ AS x FROM t"),
      (.unknownFunction, "SELECT id FROM t WHERE a = ⟦auth.user_id()⟧"),
      (.unknownFunction, "SELECT id FROM t WHERE a < ⟦current_timestamp⟧"),
      (.castType, "SELECT id, CAST(a AS ⟦varchar(10)⟧) AS x FROM t"),
      (.castType, "SELECT id, a::⟦double precision⟧ AS x FROM t"),
      (.badSchema, "SELECT id FROM ⟦\"a.b.c\"⟧.t"),
      (.badSchema, "SELECT id FROM ⟦a.b.c⟧"),
      (.unknownRef, "SELECT id FROM t WHERE ⟦z⟧.a = 1"),
      (.unknownRef, "SELECT id FROM t AS x WHERE ⟦t⟧.a = 1"),
      (.unknownRef, "SELECT id FROM t WHERE ⟦public.t.a⟧ = 1"),
      (.star, "SELECT id, length(⟦*⟧) AS x FROM t"),
      (.star, "SELECT id, upper(t.⟦*⟧) AS x FROM t"),
      (.jsonMember, "SELECT id, ⟦a ->> 1⟧ AS x FROM t"),
      (.warnCase, "SELECT id, ⟦camelCol⟧ FROM t WHERE camelCol = 1"),
    ])
  func dataQuery(_ code: DiagnosticCode, _ sql: String) {
    expectFinding(code, data(sql))
  }

  @Test(
    "Parameter queries",
    arguments: [
      (DiagnosticCode.star, "SELECT ⟦*⟧ FROM p"),
      (.unknownRef, "SELECT id FROM p WHERE a = ⟦bucket⟧.x"),
      (.arity, "SELECT ⟦request.parameter()⟧ AS x"),
      (.singleTable, "SELECT a.id FROM a, ⟦b⟧"),
    ])
  func parameterQuery(_ code: DiagnosticCode, _ sql: String) {
    expectFinding(code, parameters(sql))
  }

  @Test(
    "Streams of edition 3",
    arguments: [
      (DiagnosticCode.joinKind, "SELECT t.id FROM t ⟦FULL OUTER JOIN⟧ z ON z.id = t.o"),
      (.joinKind, "SELECT t.id FROM t ⟦CROSS JOIN⟧ z"),
      (.joinKind, "SELECT t.id FROM t JOIN z ⟦USING⟧ (id)"),
      (.inList, "SELECT id FROM t WHERE o NOT IN ⟦(1, 2)⟧"),
      (.star, "SELECT id FROM t WHERE o IN (SELECT ⟦*⟧ FROM z)"),
      (.arity, "SELECT id, ⟦instr(a)⟧ AS x FROM t"),
      (.arity, "SELECT id FROM t WHERE a = ⟦auth.parameter()⟧"),
      (.metadata, "SELECT id, ⟦t.schema(1)⟧ AS x FROM t"),
      (.nondeterministic, "SELECT id, ⟦randomBlob(4)⟧ AS x FROM t"),
      (.unknownFunction, "SELECT id, ⟦json_valid(a)⟧ AS x FROM t"),
      (.unsupportedOperator, "SELECT id, ⟦a IN '[1]'⟧ AS x FROM t"),
      (.unsupportedOperator, "SELECT id, ⟦ARRAY[1]⟧ AS x FROM t"),
    ])
  func streamQuery(_ code: DiagnosticCode, _ sql: String) {
    expectFinding(code, stream(sql))
  }

  @Test("An empty query is a syntax error") func empty() {
    expectFinding(.sqlSyntax, "bucket_definitions:\n  b:\n    data:\n      - ⟦\"\"⟧\n")
  }

  @Test("A function's name is near to one that exists") func nearFunction() {
    let (_, diagnostics) = RulesReader.read(data("SELECT id, uper(a) AS x FROM t"), fileName: "r")
    #expect(diagnostics.first?.remedy == "did you mean upper?")
  }

  @Test("Deep parentheses are refused, with a message")
  func deepParentheses() {
    let count = 30_000
    let text = String(repeating: "(", count: count) + "1" + String(repeating: ")", count: count)
    let (_, diagnostics) = RulesReader.read(data("SELECT id FROM t WHERE \(text)"), fileName: "r")
    #expect(diagnostics.map(\.code) == [.tooDeep])
  }

  @Test(
    "Deep operators are refused, with a message",
    arguments: ["NOT ", "- ", "1 + ", "'x' || ", "1 = ", "CASE WHEN ", "upper("])
  func deepOperators(_ piece: String) {
    let text = String(repeating: piece, count: 2000) + "a"
    let (_, diagnostics) = RulesReader.read(data("SELECT id FROM t WHERE \(text)"), fileName: "r")
    #expect(diagnostics.map(\.code) == [.tooDeep])
  }

  @Test("A query may have a thousand alternatives") func longChain() {
    let text = Array(repeating: "a = 1", count: 1000).joined(separator: " OR ")
    let (rules, diagnostics) = RulesReader.read(
      data("SELECT id FROM t WHERE \(text)"), fileName: "r")
    #expect(diagnostics.isEmpty)
    #expect(rules?.bucketDefinitions[0].data[0].select?.condition?.depth ?? 0 < 20)
  }
}
