import SyncRules
import Testing

/// A source text with markers: `⟦` and `⟧` enclose what a diagnostic must cover.
struct MarkedText {
  let text: String
  /// The enclosed part as UTF-8 offsets of `text`.
  let span: SourceSpan

  init(_ marked: String) {
    let open = marked.firstIndex(of: "⟦")!
    let close = marked.firstIndex(of: "⟧")!
    let before = String(marked[..<open])
    let inside = String(marked[marked.index(after: open)..<close])
    text = before + inside + String(marked[marked.index(after: close)...])
    span = SourceSpan(start: before.utf8.count, end: before.utf8.count + inside.utf8.count)
  }
}

/// Checks that reading the text without its markers gives one finding, with this code, exactly at
/// the enclosed part.
func expectFinding(
  _ code: DiagnosticCode, _ marked: String, sourceLocation: SourceLocation = #_sourceLocation
) {
  let source = MarkedText(marked)
  let (_, diagnostics) = RulesReader.read(source.text, fileName: "rules.yaml")
  #expect(diagnostics.map(\.code) == [code], sourceLocation: sourceLocation)
  let file = SourceFile(name: "rules.yaml", text: source.text)
  #expect(
    diagnostics.first?.span.map(file.text(of:)) == file.text(of: source.span),
    sourceLocation: sourceLocation)
  #expect(diagnostics.first?.span == source.span, sourceLocation: sourceLocation)
}
