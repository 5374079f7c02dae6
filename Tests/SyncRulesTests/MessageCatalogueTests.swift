import Foundation
import Testing

/// `rules/errors.md` has exactly the codes that the sources have.
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

  /// Names of environment variables, which look the same.
  private static let variables: Set = [
    "SLUICE_CONFIG", "SLUICE_RULES", "SLUICE_TOKEN", "SLUICE_TEST_",
  ]

  /// A code that is made of two parts has its first part in the sources, with `_` at its end; the page
  /// may name all codes with the same beginning as one, with `…` there.
  @Test("Every code of the gateway, the commands and replicas is in a table, and no other")
  func tables() throws {
    var written: Set<String> = []
    let sources = Self.root.appending(path: "Sources")
    let files = try #require(FileManager.default.enumerator(atPath: sources.path))
    for case let file as String in files
    where file.hasSuffix(".swift") && !file.hasPrefix("TestSupport") {
      let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
      written.formUnion(codes(in: text, #/"(SLUICE_[A-Z0-9_]+)/#))
    }
    written.subtract(Self.variables)
    #expect(written.count > 50)
    // What PostgreSQL's failures mean to operators is told on their page.
    let pages = try ["rules/errors.md", "deploy/README.md"].map {
      try String(contentsOf: Self.root.appending(path: $0), encoding: .utf8)
    }
    let rows = pages.flatMap { $0.split(separator: "\n") }.filter { $0.hasPrefix("| `") }
      .map { String($0.dropFirst().prefix { $0 != "|" }) }
    let described = rows.flatMap { codes(in: $0, #/`(SLUICE_[A-Z0-9_]+…?)`/#) }
    let groups = described.filter { $0.hasSuffix("…") }.map { String($0.dropLast()) }
    for code in written {
      #expect(
        described.contains(code) || groups.contains { code.hasPrefix($0) },
        "\(code) is in no table")
    }
    for code in described where !code.hasSuffix("…") {
      #expect(written.contains(code), "nothing says \(code)")
    }
    for group in groups {
      #expect(written.contains { $0.hasPrefix(group) }, "nothing says \(group)…")
    }
  }
}
