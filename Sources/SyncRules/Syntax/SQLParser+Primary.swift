extension SQLParser {
  /// A literal, name, call, parenthesis, CASE, CAST, ARRAY or ROW.
  mutating func primary() throws(Stop) -> Expression {
    let token = token
    let start = token.range.lowerBound
    switch token.kind {
    case .string:
      eat()
      return Expression(.string(token.text), span: span(token))
    case .integer:
      eat()
      return Expression(.integer(token.text), span: span(token))
    case .real:
      eat()
      return Expression(.real(token.text), span: span(token))
    case .quotedName: return try reference(from: start)
    case .word: return try wordPrimary(from: start)
    case .symbol where token.text == "(": return try parenthesis(from: start)
    case .symbol, .end: throw syntaxError("expected an expression")
    }
  }

  private mutating func wordPrimary(from start: Int) throws(Stop) -> Expression {
    let literals: [String: Expression.Kind] = [
      "null": .null, "true": .boolean(true), "false": .boolean(false),
    ]
    guard let word = token.word else { throw syntaxError("expected an expression") }
    if let literal = literals[word] { return Expression(literal, span: span(eat())) }
    let next = self.token(ahead: 1)
    switch word {
    case "case": return try conditional(from: start)
    case "cast" where next.text == "(": return try cast(from: start)
    case "array" where next.text == "[":
      eat()
      eat()
      let items = try expressions(until: "]")
      try expect("]", "after the array's items")
      return Expression(.array(items), span: span(from: start))
    case "row" where next.text == "(":
      eat()
      eat()
      let items = try expressions(until: ")")
      try expect(")", "after the row's items")
      return Expression(.row(items), span: span(from: start))
    case "exists" where next.text == "(": return try exists(from: start)
    case "interval" where next.kind == .string:
      eat()
      return Expression(.interval(eat().text), span: span(from: start))
    case "date" where next.kind == .string, "time" where next.kind == .string,
      "timestamp" where next.kind == .string,
      "timestamptz" where next.kind == .string:
      eat()
      refuse(
        .sqlSyntax, "there are no \(word.uppercased()) literals",
        remedy: "write the text alone; dates and times are compared as text", at: span(from: start))
      return Expression(.string(eat().text), span: span(from: start))
    case "current_timestamp", "current_date", "current_time", "localtime", "localtimestamp":
      refuse(
        .unknownFunction, "\(word.uppercased()) is not available",
        remedy: "compare a column with now(): created_at > now() - interval '90 days'",
        at: span(eat()))
      return Expression(.null, span: span(from: start))
    default: return try reference(from: start)
    }
  }

  private mutating func parenthesis(from start: Int) throws(Stop) -> Expression {
    eat()
    if at(word: "select") {
      let select = try select()
      try expect(")", "after the subquery")
      return Expression(.subquery(select), span: span(from: start))
    }
    let inner = try expression()
    guard !at(",") else {
      throw syntaxError("a list in parentheses can only follow IN: expected ')'")
    }
    try expect(")", "to close the parenthesis")
    if at("."), token(ahead: 1).kind != .symbol {
      eat()
      refuse(
        .unknownRef, "a field of a composite value cannot be selected",
        remedy: "turn on custom_postgres_types and write value ->> 'field'", at: span(from: start))
      eat()
      return Expression(.null, span: span(from: start))
    }
    return Expression(inner.kind, span: span(from: start))
  }

  private mutating func exists(from start: Int) throws(Stop) -> Expression {
    refuse(
      .subqueryPosition, "EXISTS is not available",
      remedy: "write value IN (SELECT column FROM …) in a stream", at: span(eat()))
    try expect("(", "after EXISTS")
    _ = try select()
    try expect(")", "after the subquery")
    return Expression(.null, span: span(from: start))
  }

  // MARK: Names and calls

  private mutating func reference(from start: Int) throws(Stop) -> Expression {
    let first = try name("an expression")
    if at("(") {
      let call = try call(qualifier: nil, name: first, from: start)
      return Expression(.call(call), span: call.span)
    }
    guard consume(if: ".") != nil else {
      return Expression(
        .column(ColumnReference(qualifier: nil, name: first)), span: span(from: start))
    }
    if at("*") {
      refuse(.star, "a '*' cannot be part of an expression", at: span(eat()))
      return Expression(.null, span: span(from: start))
    }
    let second = try name("a column after '.'", allowReserved: true)
    if at("(") {
      let call = try call(qualifier: first, name: second, from: start)
      return Expression(.call(call), span: call.span)
    }
    if consume(if: ".") != nil {
      let third = try name("a column after '.'", allowReserved: true)
      refuse(
        .unknownRef, "a column has at most the table in front of it",
        remedy: "write \(second.written).\(third.written)", at: span(from: start))
      return Expression(
        .column(ColumnReference(qualifier: second, name: third)), span: span(from: start))
    }
    return Expression(
      .column(ColumnReference(qualifier: first, name: second)), span: span(from: start))
  }

  mutating func call(
    qualifier: Identifier?, name: Identifier, from start: Int
  ) throws(Stop) -> FunctionCall {
    try expect("(", "after the function's name")
    var arguments: [Expression] = []
    if at("*") {
      refuse(.star, "a '*' cannot be an argument", at: span(eat()))
    } else if let word = consume(ifWord: "distinct") {
      refuse(.unknownFunction, "there are no aggregate functions", at: span(word))
    }
    arguments += try expressions(until: ")")
    if name.name == "substring", let word = consume(ifWord: "from") ?? consume(ifWord: "for") {
      refuse(
        .unknownFunction, "substring(… \(word.text.uppercased()) …) is not available",
        remedy: "write substring(text, start, length)", at: span(word))
      _ = try expression()
      if consume(ifWord: "for") != nil { _ = try expression() }
    }
    try expect(")", "after the arguments")
    let span = span(from: start)
    if let word = token.word, ["over", "filter", "within"].contains(word),
      token(ahead: 1).text == "(" || token(ahead: 1).word == "group"
    {
      refuse(
        .unknownFunction, "there are no aggregate or window functions", at: self.span(token))
      throw Stop()
    }
    return FunctionCall(qualifier: qualifier, name: name, arguments: arguments, span: span)
  }

  // MARK: CASE and casts

  private mutating func conditional(from start: Int) throws(Stop) -> Expression {
    eat()
    let operand = at(word: "when") ? nil : try expression()
    var branches: [CaseBranch] = []
    while consume(ifWord: "when") != nil {
      let condition = try expression()
      try expect(word: "then", "after the condition of WHEN")
      branches.append(CaseBranch(condition: condition, result: try expression()))
    }
    guard !branches.isEmpty else { throw syntaxError("expected WHEN") }
    let otherwise = consume(ifWord: "else") != nil ? try expression() : nil
    try expect(word: "end", "to close CASE")
    return Expression(
      .conditional(operand: operand, branches: branches, otherwise: otherwise),
      span: span(from: start))
  }

  private mutating func cast(from start: Int) throws(Stop) -> Expression {
    eat()
    eat()
    let operand = try expression()
    try expect(word: "as", "in CAST")
    let type = try castType()
    try expect(")", "after the type")
    return Expression(.cast(operand, type), span: span(from: start))
  }

  private mutating func castType() throws(Stop) -> CastType {
    let start = token.range.lowerBound
    guard at(.word) || at(.quotedName) else { throw syntaxError("expected a type") }
    let type = eat()
    if type.text.lowercased() == "double", at(word: "precision") { eat() }
    if consume(if: ".") != nil { _ = try name("a type") }
    if consume(if: "(") != nil {
      _ = try expressions(until: ")")
      try expect(")", "after the type's length")
    }
    while at("["), token(ahead: 1).text == "]" {
      eat()
      eat()
    }
    let written = source(from: start)
    if let known = CastType(rawValue: written.lowercased()) { return known }
    let replacements = [
      "int": "integer", "int2": "integer", "int4": "integer", "int8": "integer",
      "bigint": "integer", "smallint": "integer", "varchar": "text", "char": "text",
      "uuid": "text", "float": "real", "float4": "real", "float8": "real", "double": "real",
      "decimal": "numeric", "bytea": "blob", "json": "text", "jsonb": "text", "boolean": "integer",
      "bool": "integer",
    ]
    let instead = replacements[type.text.lowercased()].map { "write \($0) instead" }
    refuse(
      .castType, "a value cannot be cast to \(written)",
      remedy: instead ?? "the types are text, numeric, integer, real and blob",
      at: span(from: start))
    return .text
  }

  // MARK: Postfixes

  /// `-> 'key'`, `->> 'key'`, `::type`, as many as follow.
  mutating func postfix(_ base: Expression, from start: Int) throws(Stop) -> Expression {
    var result = base
    while true {
      guard result.depth <= Self.maximumDepth else { throw tooDeep(at: result.span) }
      if at("->") || at("->>") {
        let asValue = eat().text == "->>"
        let member = try member()
        result = Expression(.member(result, member, asValue: asValue), span: span(from: start))
      } else if consume(if: "::") != nil {
        result = Expression(.cast(result, try castType()), span: span(from: start))
      } else if at("[") {
        try refusedSubscript()
      } else {
        return result
      }
    }
  }

  private mutating func member() throws(Stop) -> JSONMember {
    switch token.kind {
    case .string: return .key(eat().text)
    case .integer:
      if let index = Int(token.text) {
        eat()
        return .index(index)
      }
      throw syntaxError("expected a smaller index")
    default:
      throw syntaxError(
        "expected a string after '->'",
        remedy: "the key must be a literal such as 'name' or '$.a.b'")
    }
  }

  private mutating func refusedSubscript() throws(Stop) {
    let open = eat()
    _ = try expressions(until: "]")
    try expect("]", "after the subscript")
    refuse(
      .unsupportedOperator, "subscripts are not available",
      remedy: "arrays are JSON text: write value ->> '0' for the first element",
      at: span(from: open.range.lowerBound))
  }
}
