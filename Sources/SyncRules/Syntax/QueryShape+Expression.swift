extension QueryShape {
  /// What an expression is for.
  enum Position {
    /// A term of WHERE or ON, reached through AND, OR and NOT only.
    case condition
    case value
  }

  mutating func check(_ expression: Expression, position: Position) {
    switch expression.kind {
    case .null, .boolean, .integer, .real, .string: break
    case .column(let column):
      for name in [column.qualifier, column.name].compactMap({ $0 }) { checkCase(name) }
    case .call(let call): check(call)
    case .unary(.not, let operand): check(operand, position: position)
    case .unary(let op, let operand): checkSign(op, operand, at: expression.span)
    case .binary(let op, let left, let right):
      check(op, left, right, at: expression.span, position: position)
    case .isTest(let operand, let test, negated: _):
      if test != .null, !dialect.isStream {
        refuseOperator("IS \(test.rawValue)", "write the value alone, or NOT value", expression)
      }
      check(operand, position: .value)
    case .between:
      if !dialect.isStream { refuseOperator("BETWEEN", "write x >= low AND x <= high", expression) }
      for child in expression.children where !NowExpression.isMeant(by: child) {
        check(child, position: .value)
      }
    case .membership(let operand, let set, let negated):
      check(operand, position: .value)
      checkMembership(set, negated: negated, expression, position: position)
    case .conditional:
      if !dialect.isStream { refuseOperator("CASE", "write iif(condition, a, b)", expression) }
      checkChildren(expression)
    case .cast(let operand, _): check(operand, position: .value)
    case .member(let operand, let member, asValue: _):
      if case .index(let index) = member, !dialect.isStream {
        refuse(
          .jsonMember, "the right side of '->' must be a string here",
          remedy: "write '\(index)' in quotes", at: expression.span)
      }
      check(operand, position: .value)
    case .interval:
      refuse(
        .now, "an interval can only be added to now() or to a column that is compared with now()",
        remedy: NowExpression.example, at: expression.span)
    case .array, .row:
      refuseOperator("ARRAY[…] or ROW(…)", "a list can only follow IN", expression)
    case .subquery(let select):
      refuse(
        .subqueryPosition, "a subquery cannot be a value", remedy: subqueryRemedy, at: select.span)
    }
  }

  private var subqueryRemedy: String {
    switch dialect {
    case .stream, .alphaStream: "write value IN (SELECT …)"
    default: "put the lookup into a parameter query of the definition"
    }
  }

  private mutating func checkChildren(_ expression: Expression) {
    for child in expression.children { check(child, position: .value) }
  }

  private mutating func refuseOperator(_ name: String, _ remedy: String?, _ expression: Expression)
  {
    refuse(
      .unsupportedOperator, "\(name) is not available here", remedy: remedy, at: expression.span)
  }

  private mutating func checkSign(_ op: UnaryOperator, _ operand: Expression, at span: SourceSpan) {
    if op == .minus {
      refuse(
        .unsupportedOperator, "only a number can have a minus sign", remedy: "write 0 - value",
        at: span)
    } else if !dialect.isStream {
      refuse(.unsupportedOperator, "there is no plus sign", remedy: "remove it", at: span)
    }
    check(operand, position: .value)
  }

  private mutating func check(
    _ op: BinaryOperator, _ left: Expression, _ right: Expression, at span: SourceSpan,
    position: Position
  ) {
    switch op {
    case .and, .or:
      check(left, position: position)
      check(right, position: position)
    case .modulo, .bitAnd, .bitOr, .shiftLeft, .shiftRight:
      refuse(.unsupportedOperator, "the operator '\(op.rawValue)' is not available", at: span)
    case .overlap:
      switch dialect {
      case .stream, .alphaStream:
        checkOverlapSide(left)
        checkOverlapSide(right)
      default:
        refuse(
          .unsupportedOperator, "the operator '&&' is not available here",
          remedy: "in a data query, write bucket.parameter IN array_column", at: span)
      }
    case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual:
      checkCompared(left, with: right)
      checkCompared(right, with: left)
    default:
      check(left, position: .value)
      check(right, position: .value)
    }
  }

  /// A side of a comparison, which may be a moment, or a column and an interval beside a moment.
  private mutating func checkCompared(_ side: Expression, with other: Expression) {
    if NowExpression.isMeant(by: side) { return }
    if NowExpression.isMeant(by: other), let (column, _) = side.shiftedByInterval {
      return check(column, position: .value)
    }
    check(side, position: .value)
  }

  private mutating func checkOverlapSide(_ side: Expression) {
    switch side.kind {
    case .subquery(let select): check(select, isSubquery: true)
    case .array(let items) where dialect.isStream, .row(let items) where dialect.isStream:
      for item in items { check(item, position: .value) }
    default: check(side, position: .value)
    }
  }

  // MARK: IN

  private static let jsonList = "write a JSON array: IN '[1, 2]'"

  private mutating func checkMembership(
    _ set: MembershipSet, negated: Bool, _ expression: Expression, position: Position
  ) {
    if negated, dialect != .stream, dialect != .alphaStream {
      refuseOperator("NOT IN", "write NOT (x IN …)", expression)
    }
    switch set {
    case .list(let items, let span):
      refuse(
        dialect.isStream ? .inList : .unsupportedOperator,
        "a list in parentheses cannot follow IN",
        remedy: dialect.isStream ? "write IN ARRAY[…]" : Self.jsonList, at: span)
      for item in items { check(item, position: .value) }
    case .subquery(let select):
      switch dialect {
      case .stream, .alphaStream: check(select, isSubquery: true)
      default:
        refuse(
          .subqueryPosition, "there are no subqueries here", remedy: subqueryRemedy,
          at: select.span)
      }
    case .expression(let inner):
      checkMembershipValue(inner, negated: negated, expression, position: position)
    }
  }

  private mutating func checkMembershipValue(
    _ inner: Expression, negated: Bool, _ expression: Expression, position: Position
  ) {
    switch inner.kind {
    case .array(let items), .row(let items):
      if !dialect.isStream { refuseOperator("IN ARRAY[…]", Self.jsonList, expression) }
      for item in items { check(item, position: .value) }
    default:
      if dialect.isStream, position == .value, !negated {
        refuseOperator("IN with a JSON array as a value", "write it as a term of WHERE", expression)
      }
      check(inner, position: .value)
    }
  }

  // MARK: Functions

  private mutating func check(_ call: FunctionCall) {
    defer { for argument in call.arguments { check(argument, position: .value) } }
    let name = call.displayName
    if call.qualifier != nil {
      if let count = dialect.requestFunctions[name] {
        if call.arguments.count != count, dialect.isStream || name.hasSuffix(".parameter") {
          refuse(
            .arity, "\(name) takes \(Self.count(count...count)), not \(call.arguments.count)",
            at: call.span)
        }
      } else if dialect.isStream, ["schema", "table_name", "table_suffix"].contains(call.name.name)
      {
        if !call.arguments.isEmpty {
          refuse(.metadata, "\(call.name.name)() takes no arguments", at: call.span)
        }
      } else {
        refuse(
          .unknownFunction, "there is no function \(name) here", remedy: qualifiedRemedy(name),
          at: call.span)
      }
      return
    }
    guard let range = dialect.scalarFunctions[name] else { return refuseUnknown(call) }
    if dialect.isStream, !range.contains(call.arguments.count) {
      refuse(
        .arity, "\(name) takes \(Self.count(range)), not \(call.arguments.count)", at: call.span)
    }
  }

  private static func count(_ range: ClosedRange<Int>) -> String {
    let unit = range.upperBound == 1 ? "argument" : "arguments"
    if range.lowerBound == range.upperBound { return "\(range.lowerBound) \(unit)" }
    if range.upperBound == .max { return "at least \(range.lowerBound) \(unit)" }
    return "\(range.lowerBound) to \(range.upperBound) \(unit)"
  }

  private mutating func refuseUnknown(_ call: FunctionCall) {
    let name = call.name.name
    if ["random", "randomblob"].contains(name) {
      refuse(
        dialect.isStream ? .nondeterministic : .unknownFunction,
        "\(name) gives another value each time; a row's buckets must follow from its columns",
        at: call.span)
      return
    }
    refuse(
      .unknownFunction, "there is no function \(name)",
      remedy: Self.replacements[name] ?? near(name),
      at: call.span)
  }

  private func near(_ name: String) -> String? {
    Suggestion.nearest(to: name, among: dialect.scalarFunctions.keys.sorted()).map {
      "did you mean \($0)?"
    }
  }

  private static let replacements = [
    "coalesce": "write ifnull(a, b)", "substr": "write substring(text, start, length)",
    "now": NowExpression.example,
    "json_each": "json_each can only stand in FROM",
    "strftime": "write datetime(value) or unixepoch(value)",
    "date": "write substring(datetime(value), 1, 10)", "concat": "write a || b",
    "json_valid": "json_valid is available in bucket definitions only",
    "count": "there are no aggregate functions", "sum": "there are no aggregate functions",
    "min": "there are no aggregate functions", "max": "there are no aggregate functions",
    "avg": "there are no aggregate functions",
  ]

  private func qualifiedRemedy(_ name: String) -> String? {
    let known = dialect.requestFunctions.keys.sorted()
    if dialect.isStream || dialect == .alphaStream, name.hasPrefix("request.") {
      return "streams use auth.user_id(), auth.parameters() and connection.parameters()"
    }
    if !dialect.isStream, name.hasPrefix("auth.") {
      return "bucket definitions use request.user_id() and request.jwt()"
    }
    return Suggestion.nearest(to: name, among: known).map { "did you mean \($0)()?" }
  }
}
