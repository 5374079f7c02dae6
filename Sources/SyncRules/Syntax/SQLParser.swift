/// Parses one SQL text of a rules file.
///
/// The grammar is PostgreSQL's as far as any dialect of the rules needs it. What no dialect accepts
/// is parsed and refused with a message of its own where that is likely to be written (`LIMIT`,
/// `LIKE`, …). The first syntax error ends the parse; refusals do not.
///
/// Four verbs touch the tokens: `at` looks, `eat` takes, `consume(if:)` takes if it is there, and
/// `expect` takes or reports.
package struct SQLParser {
  /// Thrown after the error has been recorded.
  struct Stop: Error {}

  /// How deep parentheses, subqueries and operators may be nested.
  static let maximumDepth = 64
  static let maximumBytes = 64 << 10

  let text: String
  private let map: SourceMap
  private let tokens: [SQLToken]
  private var index = 0
  private(set) var diagnostics: [Diagnostic] = []
  private var depth = 0

  private init(_ text: String, map: SourceMap) {
    self.text = text
    self.map = map
    let (tokens, problem) =
      text.utf8.count <= Self.maximumBytes
      ? SQLLexer.tokens(of: text)
      : (
        [SQLToken(kind: .end, text: "", range: 0..<0)],
        .init(message: "the query is larger than \(Self.maximumBytes) bytes", range: 0..<1)
      )
    self.tokens = tokens
    if let problem {
      diagnostics.append(
        .error(
          .sqlSyntax, problem.message, remedy: problem.remedy, at: map.span(problem.range)))
    }
  }

  /// Parses a text that must be one SELECT.
  ///
  /// After a syntax error there is no statement. A refused part is NULL in the statement, so that
  /// the rest of it can be checked; with errors, no later stage may use it.
  package static func parse(
    _ text: String, map: SourceMap
  ) -> (select: SelectStatement?, diagnostics: [Diagnostic]) {
    var parser = SQLParser(text, map: map)
    guard parser.diagnostics.isEmpty else { return (nil, parser.diagnostics) }
    let select = try? parser.root()
    return (select, parser.diagnostics)
  }

  // MARK: The four verbs

  var token: SQLToken { tokens[index] }

  func token(ahead distance: Int) -> SQLToken {
    tokens[min(index + distance, tokens.count - 1)]
  }

  func at(_ symbol: String) -> Bool { token.kind == .symbol && token.text == symbol }

  func at(word: String) -> Bool { token.word == word }

  func at(_ kind: SQLToken.Kind) -> Bool { token.kind == kind }

  @discardableResult
  mutating func eat() -> SQLToken {
    defer { if index < tokens.count - 1 { index += 1 } }
    return tokens[index]
  }

  mutating func consume(if symbol: String) -> SQLToken? { at(symbol) ? eat() : nil }

  mutating func consume(ifWord word: String) -> SQLToken? { at(word: word) ? eat() : nil }

  @discardableResult
  mutating func expect(_ symbol: String, _ purpose: String) throws(Stop) -> SQLToken {
    guard at(symbol) else { throw syntaxError("expected '\(symbol)' \(purpose)") }
    return eat()
  }

  @discardableResult
  mutating func expect(word: String, _ purpose: String) throws(Stop) -> SQLToken {
    guard at(word: word) else { throw syntaxError("expected \(word.uppercased()) \(purpose)") }
    return eat()
  }

  // MARK: Spans and findings

  /// The end of the last token taken.
  var lastEnd: Int { index > 0 ? tokens[index - 1].range.upperBound : 0 }

  func span(_ range: Range<Int>) -> SourceSpan { map.span(range) }

  func span(_ token: SQLToken) -> SourceSpan { map.span(token.range) }

  /// From `start` to the end of the last token taken.
  func span(from start: Int) -> SourceSpan { map.span(start..<max(start, lastEnd)) }

  func source(from start: Int) -> String {
    let bytes = Array(text.utf8)
    return String(decoding: bytes[start..<max(start, lastEnd)], as: UTF8.self)
  }

  mutating func syntaxError(_ expectation: String, remedy: String? = nil) -> Stop {
    let found = token
    var remedy = remedy
    if let word = found.word, Self.reservedWords.contains(word), remedy == nil,
      !Self.clauseWords.contains(word)
    {
      remedy = "if '\(found.text)' is a name, put it in double quotes"
    }
    diagnostics.append(
      .error(
        .sqlSyntax, "\(expectation), found \(found.displayName)", remedy: remedy, at: span(found)))
    return Stop()
  }

  mutating func refuse(
    _ code: DiagnosticCode, _ message: String, remedy: String? = nil, at span: SourceSpan
  ) {
    diagnostics.append(.error(code, message, remedy: remedy, at: span))
  }

  mutating func descend<Result>(
    _ body: (inout SQLParser) throws(Stop) -> Result
  ) throws(Stop) -> Result {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.maximumDepth else { throw tooDeep(at: span(token)) }
    return try body(&self)
  }

  mutating func tooDeep(at span: SourceSpan) -> Stop {
    refuse(
      .tooDeep, "the query is nested more than \(Self.maximumDepth) levels deep",
      remedy: "write it with fewer parentheses, or split it into several queries", at: span)
    return Stop()
  }

  // MARK: The statement as a whole

  private static let otherStatements: Set<String> = [
    "insert", "update", "delete", "merge", "with", "values", "table", "create", "alter", "drop",
    "truncate", "call", "do", "set", "begin", "copy", "explain",
  ]

  private mutating func root() throws(Stop) -> SelectStatement {
    guard !at(.end) else {
      refuse(.sqlSyntax, "the query is empty", remedy: "write SELECT …", at: span(token))
      throw Stop()
    }
    if let word = token.word, Self.otherStatements.contains(word) {
      refuse(
        .onlySelect, "a query must be a SELECT, not \(word.uppercased())",
        remedy: word == "with" ? "put the WITH query under the stream's 'with:' key" : nil,
        at: span(token))
      throw Stop()
    }
    let select = try select()
    if let word = token.word, ["union", "intersect", "except"].contains(word) {
      refuse(
        .onlySelect, "\(word.uppercased()) is not available",
        remedy: word == "union" ? "write the SELECTs as separate entries of the list" : nil,
        at: span(token))
      throw Stop()
    }
    if consume(if: ";") != nil, !at(.end) {
      refuse(
        .oneSelect, "there is a second statement after ';'",
        remedy: "write each SELECT as its own entry of the list", at: span(token))
      throw Stop()
    }
    guard at(.end) else { throw syntaxError("expected the end of the query") }
    return select
  }

  // MARK: Names

  func isName(_ token: SQLToken) -> Bool {
    if token.kind == .quotedName { return true }
    guard let word = token.word else { return false }
    return !Self.reservedWords.contains(word)
  }

  mutating func name(_ purpose: String, allowReserved: Bool = false) throws(Stop) -> Identifier {
    guard isName(token) || (allowReserved && at(.word)) else {
      throw syntaxError("expected \(purpose)")
    }
    return identifier(eat())
  }

  func identifier(_ token: SQLToken) -> Identifier {
    let isQuoted = token.kind == .quotedName
    return Identifier(
      name: isQuoted ? token.text : token.text.lowercased(), written: token.text,
      isQuoted: isQuoted, span: span(token))
  }

  /// PostgreSQL's reserved words, and those that begin a join.
  static let reservedWords: Set<String> = [
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "between",
    "both", "case", "cast", "check", "collate", "column", "constraint", "create", "cross",
    "current_catalog", "current_date", "current_role", "current_time", "current_timestamp",
    "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end", "except",
    "false", "fetch", "for", "foreign", "from", "full", "grant", "group", "having", "ilike", "in",
    "initially", "inner", "intersect", "into", "is", "isnull", "join", "lateral", "leading", "left",
    "like", "limit", "localtime", "localtimestamp", "natural", "not", "notnull", "null", "offset",
    "on", "only", "or", "order", "outer", "placing", "primary", "references", "returning", "right",
    "select", "session_user", "similar", "some", "symmetric", "table", "then", "to", "trailing",
    "true", "union", "unique", "user", "using", "variadic", "when", "where", "window", "with",
  ]

  /// Reserved words that nobody means as a name.
  private static let clauseWords: Set<String> = [
    "and", "as", "case", "cast", "between", "else", "from", "in", "is", "join", "like", "not",
    "null", "on", "or", "select", "then", "when", "where",
  ]
}
