import SyncRules
import Testing

/// Files that nobody meant to write never trap, and never take long.
@Suite struct RulesFuzzTests {
  /// Splitmix64: the same seed gives the same files.
  private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
  }

  private static let pieces = [
    "(", ")", "'", "\"", ":", "- ", "\n", "\n  ", "|", ">", "\\", "&a ", "*a", "!x ", "{", "}", "[",
    "]", ",", "SELECT", "FROM", "WHERE", "IN", "NOT", "AND", "::", "->>", "CASE", "bucket.", "--",
    "/*", "auth.user_id()", "json_each(", " AND t.o = ", " IN (SELECT o FROM z)", "t, z",
    "\u{0}", "\u{85}", "\u{2028}", "😀", "\r", "\t", "e'\\", "$1", "%", "#", "?", "config",
  ]

  private static let catalog = Catalog(
    tables: ["t", "z"].map { name in
      CatalogTable(
        schema: "public", name: name,
        columns: ["id", "o", "u", "x", "n", "name"].map {
          CatalogColumn(name: $0, type: .builtIn("text"))
        }, key: ["id"])
    })

  private static func mutated(_ text: String, _ generator: inout Generator) -> String {
    var scalars = Array(text.unicodeScalars)
    for _ in 0...Int.random(in: 0...4, using: &generator) {
      let at = Int.random(in: 0...scalars.count, using: &generator)
      let length = min(Int.random(in: 1...12, using: &generator), scalars.count - at)
      switch Int.random(in: 0...3, using: &generator) {
      case 0: scalars.removeSubrange(at..<(at + length))
      case 1: scalars.insert(contentsOf: scalars[at..<(at + length)], at: at)
      default:
        scalars.insert(
          contentsOf: pieces.randomElement(using: &generator)!.unicodeScalars, at: at)
      }
    }
    var result = String.UnicodeScalarView()
    result.append(contentsOf: scalars)
    return String(result)
  }

  @Test("Mutated rules are read or refused with findings inside the file")
  func mutations() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = Generator(state: seed)
    let streams = StreamCompilerTests.findings.map { finding in
      let query = finding.query.filter { $0 != "⟦" && $0 != "⟧" }
        .replacing("tasks", with: "t").replacing("teams", with: "z")
      return "config: {edition: 3}\nstreams:\n  s:\n    with: {mine: SELECT o AS team FROM z}\n"
        + "    query: |\n      \(query)\n"
    }
    let cases = ValidationCaseTests.cases.rejects.map(\.rules) + streams
    let clock = ContinuousClock()
    for _ in 0..<3000 {
      let text = Self.mutated(cases.randomElement(using: &generator)!, &generator)
      let start = clock.now
      let (rules, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
      let comment: Comment = "seed \(seed): \(text)"
      let catalog = Bool.random(using: &generator) ? Self.catalog : nil
      let compiled = rules.map { PlanCompiler.compile($0, catalog).diagnostics } ?? []
      #expect(clock.now - start < .seconds(10), comment)
      #expect(rules != nil || diagnostics.hasErrors, comment)
      for span in (diagnostics + compiled).compactMap(\.span) {
        #expect(span.start >= 0 && span.start <= text.utf8.count, comment)
      }
      let file = SourceFile(name: "rules.yaml", text: text)
      #expect(!DiagnosticFormatter(file: file).json(diagnostics).isEmpty, comment)
      #expect(DiagnosticFormatter(file: file).text(diagnostics).isEmpty == diagnostics.isEmpty)
    }
  }
}
