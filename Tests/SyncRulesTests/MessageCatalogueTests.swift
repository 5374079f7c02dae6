import Foundation
import Testing

/// `rules/errors.md` has exactly the codes that the sources define.
@Suite struct MessageCatalogueTests {
  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().appending(path: "../..").standardizedFileURL

  private func codes(in text: String, _ pattern: Regex<(Substring, Substring)>) -> [String] {
    text.matches(of: pattern).map { String($0.output.1) }
  }

  @Test("Each code has one paragraph, and each paragraph a code") func catalogue() throws {
    var defined: [String] = []
    let sources = Self.root.appending(path: "Sources/SyncRules")
    for folder in ["Diagnostics", "Plan"] {
      let url = sources.appending(path: folder)
      for file in try FileManager.default.contentsOfDirectory(atPath: url.path)
      where file.hasPrefix("DiagnosticCode") {
        let text = try String(contentsOf: url.appending(path: file), encoding: .utf8)
        defined += codes(in: text, #/rawValue: "(RULES_[A-Z0-9_]+)"/#)
      }
    }
    let page = try String(contentsOf: Self.root.appending(path: "rules/errors.md"), encoding: .utf8)
    let described = codes(in: page, #/(?m)^\*\*(RULES_[A-Z0-9_]+)\*\* — /#)
    #expect(described.sorted() == defined.sorted())
  }
}
