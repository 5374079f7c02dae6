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
    #expect(rules?.bucketDefinitions.isEmpty == false || rules?.streams.isEmpty == false)
  }

  @Test("What the language reference shows reads and compiles") func reference() throws {
    let page = try String(contentsOf: Self.folder.appending(path: "README.md"), encoding: .utf8)
    let streams = try #require(page.range(of: "## Streams\n"))
    let rest = try #require(page.range(of: "\n## ", range: streams.upperBound..<page.endIndex))
    let parameters = Self.queries(in: String(page[..<streams.lowerBound]))
      .enumerated().map { index, query in
        "  b\(index):\n    data: []\n    parameters: |\n\(query)\n"
      }
    let queries = Self.queries(in: String(page[streams.upperBound..<rest.lowerBound]))
      .enumerated().map { index, query in "  s\(index):\n    query: |\n\(query)\n" }
    #expect(parameters.count == 4 && queries.count == 7)
    let yaml = page.components(separatedBy: "```").filter { $0.hasPrefix("yaml\n") }
      .map { String($0.dropFirst(5)) }
    #expect(yaml.count == 2)
    let collected = [
      "bucket_definitions:\n" + parameters.joined(),
      "config: { edition: 3 }\nstreams:\n" + queries.joined(),
    ]
    for text in yaml + collected {
      let (rules, read) = RulesReader.read(text, fileName: "README.md")
      let found = read + PlanCompiler.compile(try #require(rules), nil).diagnostics
      #expect(found.isEmpty, "\(found)")
    }
  }

  /// The queries of the page's `sql` blocks, indented for YAML; each begins with SELECT in the first column.
  private static func queries(in page: String) -> [String] {
    let blocks = page.components(separatedBy: "```").filter { $0.hasPrefix("sql\n") }
    let lines = blocks.flatMap { $0.dropFirst(4).split(separator: "\n") }
    return lines.filter { !$0.hasPrefix("--") }.reduce(into: []) { queries, line in
      if line.hasPrefix("SELECT") || queries.isEmpty {
        queries.append("      \(line)")
      } else {
        queries[queries.count - 1] += "\n      \(line)"
      }
    }
  }
}
