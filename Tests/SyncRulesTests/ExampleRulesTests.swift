import Foundation
import SyncRules
import Testing

/// The rule files that the repository shows as examples.
@Suite struct ExampleRulesTests {
  private static let folder = URL(filePath: #filePath)
    .deletingLastPathComponent().appending(path: "../../rules").standardizedFileURL

  static let names: [String] = {
    let files = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
    return (files ?? []).filter { $0.hasSuffix(".yaml") }.sorted()
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
}
