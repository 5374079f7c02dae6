/// A token of the SQL text; offsets count the text's UTF-8 bytes.
struct SQLToken: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// A name or a keyword without quotes; `text` is as written.
    case word
    case quotedName
    case string
    case integer
    case real
    /// An operator or a punctuation mark; `text` is its spelling.
    case symbol
    case end
  }

  var kind: Kind
  /// The decoded text: names without quotes, strings without quotes and escapes.
  var text: String
  var range: Range<Int>

  /// The lower-case word if this is one.
  var word: String? { kind == .word ? text.lowercased() : nil }

  /// What messages call this token.
  var displayName: String {
    switch kind {
    case .end: "the end of the query"
    case .string: "a string"
    default: "'\(text)'"
    }
  }
}
