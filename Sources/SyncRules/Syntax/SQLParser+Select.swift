extension SQLParser {
  /// `SELECT [DISTINCT] [columns] [FROM sources] [WHERE condition]`
  mutating func select() throws(Stop) -> SelectStatement {
    try descend { (parser) throws(Stop) in try parser.selectBody() }
  }

  private mutating func selectBody() throws(Stop) -> SelectStatement {
    let start = token.range.lowerBound
    try expect(word: "select", "at the beginning of a query")
    let distinct = try distinctWord()
    let columns = try columns()
    let from = consume(ifWord: "from") != nil ? try sources() : []
    var condition: Expression?
    if consume(ifWord: "where") != nil { condition = try expression() }
    let span = span(from: start)
    try refusedClauses()
    return SelectStatement(
      distinct: distinct, columns: columns, from: from, condition: condition, span: span)
  }

  private mutating func distinctWord() throws(Stop) -> SourceSpan? {
    if consume(ifWord: "all") != nil { return nil }
    guard let word = consume(ifWord: "distinct") else { return nil }
    if at(word: "on") {
      refuse(.clause, "DISTINCT ON is not available", at: span(token))
      throw Stop()
    }
    return span(word)
  }

  // MARK: The SELECT list

  private var atEndOfColumns: Bool {
    at(.end) || at(word: "from") || at(word: "where") || at(")") || at(";")
  }

  private mutating func columns() throws(Stop) -> [ResultColumn] {
    guard !atEndOfColumns else { return [] }
    var columns = [try column()]
    while consume(if: ",") != nil { columns.append(try column()) }
    return columns
  }

  private mutating func column() throws(Stop) -> ResultColumn {
    let start = token.range.lowerBound
    let value = try columnValue()
    let sourceText = source(from: start)
    var alias: Identifier?
    if consume(ifWord: "as") != nil {
      alias = try name("a name after AS", allowReserved: true)
    } else if isName(token) {
      alias = identifier(eat())
    }
    if let alias, value.isStar {
      refuse(.star, "a '*' cannot have the alias '\(alias.written)'", at: alias.span)
    }
    return ResultColumn(
      value: value, alias: alias, sourceText: sourceText, span: span(from: start))
  }

  private mutating func columnValue() throws(Stop) -> ResultColumn.Value {
    if consume(if: "*") != nil { return .star }
    if isName(token), token(ahead: 1).text == ".", token(ahead: 1).kind == .symbol,
      token(ahead: 2).text == "*", token(ahead: 2).kind == .symbol
    {
      let qualifier = identifier(eat())
      eat()
      eat()
      return .qualifiedStar(qualifier)
    }
    return .expression(try expression())
  }

  // MARK: FROM

  private mutating func sources() throws(Stop) -> [FromItem] {
    var items = [try source(join: nil, from: token.range.lowerBound)]
    while true {
      if consume(if: ",") != nil {
        items.append(try source(join: nil, from: token.range.lowerBound))
      } else if let (kind, keywords, start) = try joinWords() {
        items.append(try joined(kind, keywords, from: start))
      } else {
        return items
      }
    }
  }

  private mutating func joinWords() throws(Stop) -> (FromItem.JoinKind, SourceSpan, Int)? {
    let start = token.range.lowerBound
    let kinds: [String: FromItem.JoinKind] = [
      "inner": .inner, "left": .left, "right": .right, "full": .full, "cross": .cross,
      "natural": .natural,
    ]
    if consume(ifWord: "join") != nil { return (.inner, span(from: start), start) }
    guard let word = token.word, let kind = kinds[word] else { return nil }
    eat()
    if kind == .natural { _ = token.word.flatMap { kinds[$0] }.map { _ in eat() } }
    _ = consume(ifWord: "outer")
    try expect(word: "join", "after \(word.uppercased())")
    return (kind, span(from: start), start)
  }

  private mutating func joined(
    _ kind: FromItem.JoinKind, _ keywords: SourceSpan, from start: Int
  ) throws(Stop) -> FromItem {
    var item = try source(
      join: FromItem.Join(kind: kind, condition: nil, using: [], keywords: keywords), from: start)
    if consume(ifWord: "on") != nil {
      item.join?.condition = try expression()
    } else if let word = consume(ifWord: "using") {
      item.join?.using = try nameList("after USING")
      item.join?.keywords = span(word)
    }
    item.span = span(from: start)
    return item
  }

  private mutating func nameList(_ purpose: String) throws(Stop) -> [Identifier] {
    try expect("(", purpose)
    var names = [try name("a column name")]
    while consume(if: ",") != nil { names.append(try name("a column name")) }
    try expect(")", "after the column names")
    return names
  }

  private mutating func source(join: FromItem.Join?, from start: Int) throws(Stop) -> FromItem {
    let source = try sourceValue()
    var alias: Identifier?
    var columnAliases: [Identifier] = []
    if consume(ifWord: "as") != nil {
      alias = try name("a name after AS")
    } else if isName(token) {
      alias = identifier(eat())
    }
    if alias != nil, at("(") { columnAliases = try nameList("after the alias") }
    return FromItem(
      source: source, alias: alias, columnAliases: columnAliases, join: join,
      span: span(from: start))
  }

  private mutating func sourceValue() throws(Stop) -> FromItem.Source {
    let start = token.range.lowerBound
    if consume(if: "(") != nil {
      guard at(word: "select") else { throw syntaxError("expected SELECT after '(' in FROM") }
      let select = try select()
      try expect(")", "after the subquery")
      return .subquery(select)
    }
    let first = try name("a table name")
    var second: Identifier?
    if consume(if: ".") != nil { second = try name("a table name", allowReserved: true) }
    if at(".") {
      eat()
      _ = try name("a table name", allowReserved: true)
      refuse(
        .badSchema, "a table name has at most two parts",
        remedy: "write schema.table; a connection tag goes inside the quoted schema: "
          + "\"connection.schema\".table",
        at: span(from: start))
    }
    if at("(") {
      let qualifier = second == nil ? nil : first
      return .function(try call(qualifier: qualifier, name: second ?? first, from: start))
    }
    return .table(
      TableName(
        schema: second == nil ? nil : first, name: second ?? first, span: span(from: start)))
  }

  // MARK: Clauses no dialect has

  private mutating func refusedClauses() throws(Stop) {
    let clauses = [
      "limit", "offset", "fetch", "order", "group", "having", "for", "window", "skip",
    ]
    var isFirst = true
    while let word = token.word, clauses.contains(word) {
      let clause =
        ["order", "group"].contains(word) ? "\(word.uppercased()) BY" : word.uppercased()
      refuse(
        .clause, "\(clause) is not available: a query selects all rows that match, in no order",
        remedy: isFirst ? "remove the clause; limit and order rows in the client's query" : nil,
        at: span(token))
      isFirst = false
      skipClause(clauses)
    }
  }

  /// Skips to the next clause, the end of the subquery or the end of the text.
  private mutating func skipClause(_ clauses: [String]) {
    var parentheses = 0
    eat()
    while !at(.end), !at(";") {
      if at("(") {
        parentheses += 1
      } else if at(")") {
        if parentheses == 0 { return }
        parentheses -= 1
      } else if parentheses == 0, let word = token.word, clauses.contains(word) {
        return
      }
      eat()
    }
  }
}

extension ResultColumn.Value {
  fileprivate var isStar: Bool {
    switch self {
    case .star, .qualifiedStar: true
    case .expression: false
    }
  }
}
