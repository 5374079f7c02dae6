internal import Foundation

/// Prints diagnostics for people and for programs.
///
///     rules.yaml:4:31: error: LIMIT is not available: … [RULES_CLAUSE]
///       4 |       - SELECT id FROM t LIMIT 5
///         |                          ^~~~~
///         = Remove the clause; limit and order rows in the client's query
package struct DiagnosticFormatter: Sendable {
  private let file: SourceFile

  package init(file: SourceFile) {
    self.file = file
  }

  /// All diagnostics, each ending in a line break.
  package func text(_ diagnostics: [Diagnostic]) -> String {
    diagnostics.map(text).joined()
  }

  /// One diagnostic with its excerpt and remedy.
  package func text(_ diagnostic: Diagnostic) -> String {
    let severity = diagnostic.severity.rawValue
    let statement = "\(severity): \(diagnostic.message) [\(diagnostic.code.rawValue)]"
    guard let span = diagnostic.span else {
      let remedy = diagnostic.remedy.map { "  = \($0)\n" } ?? ""
      return "\(file.name): \(statement)\n\(remedy)"
    }
    let start = file.location(of: span.start)
    let margin = String(repeating: " ", count: String(start.line).count)
    var lines = [
      "\(file.name):\(start.line):\(start.column): \(statement)",
      "  \(start.line) | \(file.line(start.line))",
      "  \(margin) | \(marker(from: start, to: file.location(of: span.end)))",
    ]
    if let remedy = diagnostic.remedy { lines.append("  \(margin) = \(remedy)") }
    return lines.joined(separator: "\n") + "\n"
  }

  /// The diagnostics as one JSON array; lines and columns count from 1, the end is exclusive.
  package func json(_ diagnostics: [Diagnostic]) -> String {
    let records = diagnostics.map { diagnostic in
      Record(
        code: diagnostic.code.rawValue, severity: diagnostic.severity.rawValue,
        message: diagnostic.message, remedy: diagnostic.remedy, file: file.name,
        start: diagnostic.span.map { file.location(of: $0.start) },
        end: diagnostic.span.map { file.location(of: $0.end) })
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(records) else { return "[]" }
    return String(decoding: data, as: UTF8.self)
  }

  private struct Record: Encodable {
    var code: String
    var severity: String
    var message: String
    var remedy: String?
    var file: String
    var start: SourceFile.Location?
    var end: SourceFile.Location?
  }

  /// A caret below the first character and tildes below the rest of the span on its first line.
  private func marker(from start: SourceFile.Location, to end: SourceFile.Location) -> String {
    let line = Array(file.line(start.line).unicodeScalars)
    let padding = line.prefix(start.column - 1).map { $0 == "\t" ? "\t" : " " }.joined()
    let limit = end.line == start.line ? end.column : line.count + 1
    return padding + "^" + String(repeating: "~", count: max(limit - start.column - 1, 0))
  }
}
