/// Operators by precedence, loosest first:
///
///     OR · AND · NOT · = != <> · IS · < > <= >= · BETWEEN · | & # << >> · LIKE · IN ·
///     + - || && · * / % · ^ · sign · AT TIME ZONE · -> ->> ::
///
/// IN binds looser than `->`, so `x IN request.jwt() -> 'list'` needs no parentheses.
extension SQLParser {
  private enum Level: Int {
    case or = 1
    case and
    case not
    case equality
    case identity
    case comparison
    case between
    case bits
    case like
    case membership
    case sum
    case product
    case power
    case postfix
  }

  private enum Infix {
    case binary(BinaryOperator)
    case refused(String)
  }

  private static let symbolOperators: [String: (Infix, Level)] = [
    "=": (.binary(.equal), .equality), "!=": (.binary(.notEqual), .equality),
    "<>": (.binary(.notEqual), .equality), "<": (.binary(.less), .comparison),
    "<=": (.binary(.lessOrEqual), .comparison), ">": (.binary(.greater), .comparison),
    ">=": (.binary(.greaterOrEqual), .comparison), "|": (.binary(.bitOr), .bits),
    "&": (.binary(.bitAnd), .bits), "<<": (.binary(.shiftLeft), .bits),
    ">>": (.binary(.shiftRight), .bits), "#": (.refused("#"), .bits),
    "@>": (.refused("@>"), .comparison), "<@": (.refused("<@"), .comparison),
    "?": (.refused("?"), .comparison), "?|": (.refused("?|"), .comparison),
    "?&": (.refused("?&"), .comparison), "@@": (.refused("@@"), .comparison),
    "#>": (.refused("#>"), .comparison), "#>>": (.refused("#>>"), .comparison),
    "#-": (.refused("#-"), .comparison), "~": (.refused("~"), .like),
    "~*": (.refused("~*"), .like), "!~": (.refused("!~"), .like),
    "!~*": (.refused("!~*"), .like), "~~": (.refused("~~"), .like),
    "~~*": (.refused("~~*"), .like), "!~~": (.refused("!~~"), .like),
    "!~~*": (.refused("!~~*"), .like), "+": (.binary(.add), .sum),
    "-": (.binary(.subtract), .sum), "||": (.binary(.concatenate), .sum),
    "&&": (.binary(.overlap), .sum), "*": (.binary(.multiply), .product),
    "/": (.binary(.divide), .product), "%": (.binary(.modulo), .product),
    "^": (.refused("^"), .power),
  ]

  mutating func expression() throws(Stop) -> Expression {
    try descend { (parser) throws(Stop) in try parser.expression(above: 0) }
  }

  /// An expression of operators that bind tighter than `level`.
  private mutating func expression(above level: Int) throws(Stop) -> Expression {
    let start = token.range.lowerBound
    var left = try prefix(above: level)
    while let next = try infix(left, above: level, from: start) {
      guard next.depth <= Self.maximumDepth else { throw tooDeep(at: next.span) }
      left = next
    }
    return left
  }

  private mutating func operand(of level: Level) throws(Stop) -> Expression {
    try descend { (parser) throws(Stop) in try parser.expression(above: level.rawValue) }
  }

  // MARK: Prefixes

  private mutating func prefix(above level: Int) throws(Stop) -> Expression {
    let start = token.range.lowerBound
    if at(word: "not"), level < Level.not.rawValue {
      eat()
      let operand = try descend { (parser) throws(Stop) in
        try parser.expression(above: Level.not.rawValue - 1)
      }
      return Expression(.unary(.not, operand), span: span(from: start))
    }
    guard at("-") || at("+") else { return try postfix(try primary(), from: start) }
    let sign = eat()
    if sign.text == "-", at(.integer) || at(.real) {
      let number = eat()
      let literal = "-" + number.text
      let kind: Expression.Kind =
        number.kind == .integer ? .integer(literal) : .real(literal)
      return try postfix(Expression(kind, span: span(from: start)), from: start)
    }
    let operand = try self.operand(of: .power)
    return Expression(.unary(sign.text == "-" ? .minus : .plus, operand), span: span(from: start))
  }

  // MARK: Infixes

  /// `left` with the next operator and its right side; `nil` if none binds tighter than `level`.
  private mutating func infix(
    _ left: Expression, above level: Int, from start: Int
  ) throws(Stop) -> Expression? {
    if token.kind == .symbol, let (infix, own) = Self.symbolOperators[token.text] {
      guard own.rawValue > level else { return nil }
      let symbol = eat()
      switch infix {
      case .binary(let op):
        let right = try operand(of: own)
        return Expression(.binary(op, left, right), span: span(from: start))
      case .refused(let name):
        refuse(
          .unsupportedOperator, "the operator '\(name)' is not available", at: span(symbol))
        _ = try operand(of: own)
        return Expression(.null, span: span(from: start))
      }
    }
    return try wordInfix(left, above: level, from: start)
  }

  private mutating func wordInfix(
    _ left: Expression, above level: Int, from start: Int
  ) throws(Stop) -> Expression? {
    switch token.word {
    case "or" where level < Level.or.rawValue:
      return try chain(.or, left, .or, from: start)
    case "and" where level < Level.and.rawValue:
      return try chain(.and, left, .and, from: start)
    case "is" where level < Level.identity.rawValue:
      return try identityTest(left, from: start)
    case "not": return try negatedInfix(left, above: level, from: start)
    case "in" where level < Level.membership.rawValue:
      return try membership(left, negated: false, from: start)
    case "between" where level < Level.between.rawValue:
      return try between(left, negated: false, from: start)
    case "like" where level < Level.like.rawValue, "ilike" where level < Level.like.rawValue,
      "similar" where level < Level.like.rawValue:
      return try refusedPattern(from: start)
    case "at" where level < Level.postfix.rawValue && token(ahead: 1).word == "time":
      return try refusedTimeZone(from: start)
    case "collate" where level < Level.postfix.rawValue:
      refuse(.unsupportedOperator, "COLLATE is not available", at: span(eat()))
      _ = try name("a collation")
      return left
    default: return nil
    }
  }

  private mutating func negatedInfix(
    _ left: Expression, above level: Int, from start: Int
  ) throws(Stop) -> Expression? {
    switch token(ahead: 1).word {
    case "in" where level < Level.membership.rawValue:
      eat()
      return try membership(left, negated: true, from: start)
    case "between" where level < Level.between.rawValue:
      eat()
      return try between(left, negated: true, from: start)
    case "like" where level < Level.like.rawValue, "ilike" where level < Level.like.rawValue,
      "similar" where level < Level.like.rawValue:
      eat()
      return try refusedPattern(from: start)
    default: return nil
    }
  }

  /// `a AND b AND c …` as a balanced tree: the order of evaluation does not matter, and a long
  /// chain stays shallow.
  private mutating func chain(
    _ op: BinaryOperator, _ first: Expression, _ level: Level, from start: Int
  ) throws(Stop) -> Expression {
    var operands = [first]
    while consume(ifWord: op.rawValue.lowercased()) != nil {
      operands.append(try operand(of: level))
    }
    return Self.balanced(op, operands[...])
  }

  private static func balanced(_ op: BinaryOperator, _ operands: ArraySlice<Expression>)
    -> Expression
  {
    if operands.count == 1 { return operands[operands.startIndex] }
    let middle = operands.startIndex + (operands.count + 1) / 2
    let left = balanced(op, operands[..<middle])
    let right = balanced(op, operands[middle...])
    return Expression(.binary(op, left, right), span: left.span.joined(with: right.span))
  }

  private mutating func identityTest(
    _ left: Expression, from start: Int
  ) throws(Stop) -> Expression {
    eat()
    let negated = consume(ifWord: "not") != nil
    let tests: [String: IsTest] = ["null": .null, "true": .yes, "false": .no]
    if let word = token.word, let test = tests[word] {
      eat()
      return Expression(.isTest(left, test, negated: negated), span: span(from: start))
    }
    if at(word: "distinct") {
      refuse(
        .unsupportedOperator, "IS DISTINCT FROM is not available",
        remedy: "compare with '=' and test for NULL with IS NULL", at: span(eat()))
      try expect(word: "from", "after IS DISTINCT")
      _ = try operand(of: .identity)
      return Expression(.null, span: span(from: start))
    }
    throw syntaxError("expected NULL, TRUE or FALSE after IS")
  }

  private mutating func between(
    _ left: Expression, negated: Bool, from start: Int
  ) throws(Stop) -> Expression {
    eat()
    let low = try operand(of: .between)
    try expect(word: "and", "between the two bounds of BETWEEN")
    let high = try operand(of: .between)
    return Expression(
      .between(left, low: low, high: high, negated: negated), span: span(from: start))
  }

  private mutating func refusedPattern(from start: Int) throws(Stop) -> Expression {
    let word = eat()
    if word.word == "similar" { try expect(word: "to", "after SIMILAR") }
    refuse(
      .unsupportedOperator, "\(word.text.uppercased()) is not available",
      remedy: "compare with '=', or a part of the text with substring(x, start, length)",
      at: span(word))
    _ = try operand(of: .like)
    return Expression(.null, span: span(from: start))
  }

  private mutating func refusedTimeZone(from start: Int) throws(Stop) -> Expression {
    refuse(.unsupportedOperator, "AT TIME ZONE is not available", at: span(eat()))
    try expect(word: "time", "after AT")
    try expect(word: "zone", "after AT TIME")
    _ = try operand(of: .postfix)
    return Expression(.null, span: span(from: start))
  }

  // MARK: IN

  private mutating func membership(
    _ left: Expression, negated: Bool, from start: Int
  ) throws(Stop) -> Expression {
    try expect(word: "in", "here")
    let set = try membershipSet()
    return Expression(.membership(left, set, negated: negated), span: span(from: start))
  }

  private mutating func membershipSet() throws(Stop) -> MembershipSet {
    guard at("("), !parenthesisContinues else {
      return .expression(try operand(of: .membership))
    }
    let start = token.range.lowerBound
    eat()
    if at(word: "select") {
      let select = try select()
      try expect(")", "after the subquery")
      return .subquery(select)
    }
    let items = try expressions(until: ")")
    try expect(")", "after the list")
    switch items.count {
    case 0: throw syntaxError("expected an expression in the list")
    case 1: return .expression(items[0])
    default: return .list(items, span(from: start))
    }
  }

  /// Whether the parenthesis at the position is the beginning of a larger operand, as in
  /// `x IN (a) -> 'k'`.
  private var parenthesisContinues: Bool {
    var open = 0
    var distance = 0
    repeat {
      let token = token(ahead: distance)
      if token.kind == .end { return false }
      if token.kind == .symbol, token.text == "(" { open += 1 }
      if token.kind == .symbol, token.text == ")" { open -= 1 }
      distance += 1
    } while open > 0
    let next = token(ahead: distance)
    guard next.kind == .symbol else { return false }
    if ["->", "->>", "::", "[", "."].contains(next.text) { return true }
    return (Self.symbolOperators[next.text]?.1.rawValue ?? 0) > Level.membership.rawValue
  }

  func atClosing(_ symbol: String) -> Bool { at(symbol) || at(.end) }

  mutating func expressions(until symbol: String) throws(Stop) -> [Expression] {
    guard !atClosing(symbol) else { return [] }
    var items = [try expression()]
    while consume(if: ",") != nil { items.append(try expression()) }
    return items
  }
}
