/// A name in the SQL text.
package struct Identifier: Sendable, Hashable {
  /// The name that counts: lower case unless the text quoted it.
  package var name: String
  /// The name as written, without quotes.
  package var written: String
  package var isQuoted: Bool
  package var span: SourceSpan

  package init(name: String, written: String, isQuoted: Bool, span: SourceSpan) {
    self.name = name
    self.written = written
    self.isQuoted = isQuoted
    self.span = span
  }

  /// Whether folding to lower case changed the name.
  package var isFolded: Bool { name != written }
}
