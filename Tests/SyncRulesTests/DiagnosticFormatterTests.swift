import SyncRules
import Testing

@Suite struct DiagnosticFormatterTests {
  private let text = "bucket_definitions:\n  b:\n    data:\n\t  - SELECT é FROM t LIMIT 5\n"

  private var formatter: DiagnosticFormatter {
    DiagnosticFormatter(file: SourceFile(name: "rules.yaml", text: text))
  }

  private var finding: Diagnostic {
    let start = text.utf8.count - "LIMIT 5\n".utf8.count
    return .error(
      .clause, "LIMIT is not available", remedy: "Remove the clause",
      at: SourceSpan(start: start, end: start + 5))
  }

  @Test("Text shows the place, the line, a mark and the remedy") func printsText() {
    #expect(
      formatter.text([finding]) == """
        rules.yaml:4:22: error: LIMIT is not available [RULES_CLAUSE]
          4 | \t  - SELECT é FROM t LIMIT 5
            | \t                    ^~~~~
            = Remove the clause

        """)
  }

  @Test("A finding without a place names the file") func printsFile() {
    let finding = Diagnostic.warning(.warnStorage, "It is unstable", at: nil)
    #expect(formatter.text([finding]) == "rules.yaml: warning: It is unstable [RULES_W_STORAGE]\n")
  }

  @Test("A place at the end of the file has a mark behind its last line") func printsEnd() {
    let finding = Diagnostic.error(
      .yamlSyntax, "It ends", at: SourceSpan(start: 10_000, end: 10_001))
    #expect(
      formatter.text([finding]) == """
        rules.yaml:5:1: error: It ends [RULES_YAML_SYNTAX]
          5 | 
            | ^

        """)
  }

  @Test("JSON has the same facts") func printsJSON() {
    #expect(
      formatter.json([finding]) == """
        [{"code":"RULES_CLAUSE","end":{"column":27,"line":4},"file":"rules.yaml",\
        "message":"LIMIT is not available","remedy":"Remove the clause","severity":"error",\
        "start":{"column":22,"line":4}}]
        """)
  }
}
