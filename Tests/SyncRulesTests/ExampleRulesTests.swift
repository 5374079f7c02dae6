import Foundation
import SyncRules
import Testing

/// The rule files that the repository shows as examples.
@Suite struct ExampleRulesTests {
  private static let folder = URL(filePath: #filePath)
    .deletingLastPathComponent().appending(path: "../../rules").standardizedFileURL

  static let names: [String] = {
    let files = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
    return (files ?? []).filter { $0.hasSuffix(".yaml") && !$0.hasSuffix(".test.yaml") }.sorted()
  }()

  @Test("There are examples") func exist() {
    #expect(!Self.names.isEmpty)
  }

  @Test("An example reads without findings", arguments: names)
  func read(_ name: String) throws {
    let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
    let (rules, diagnostics) = RulesReader.read(text, fileName: name)
    let file = SourceFile(name: name, text: text)
    #expect(diagnostics.isEmpty, "\(DiagnosticFormatter(file: file).text(diagnostics))")
    #expect(rules?.bucketDefinitions.isEmpty == false)
  }

  @Test("What the language reference shows reads and compiles") func reference() throws {
    let page = try String(contentsOf: Self.folder.appending(path: "README.md"), encoding: .utf8)
    let parts = page.components(separatedBy: "```")
    let yaml = parts.filter { $0.hasPrefix("yaml\n") }.map { String($0.dropFirst(5)) }
    let queries = parts.filter { $0.hasPrefix("sql\n") }.flatMap { block in
      block.dropFirst(4).split(separator: "\n").filter { !$0.hasPrefix("--") }
    }
    #expect(!yaml.isEmpty && !queries.isEmpty)
    let definitions = queries.enumerated().map { index, query in
      "  b\(index):\n    parameters: |\n      \(query)\n    data: []\n"
    }
    for text in yaml + ["bucket_definitions:\n" + definitions.joined()] {
      let (rules, diagnostics) = RulesReader.read(text, fileName: "README.md")
      #expect(diagnostics.isEmpty)
      #expect(PlanCompiler.compile(try #require(rules), nil).diagnostics.isEmpty)
    }
  }
}
