/// The forms that only streams have. Each becomes comparisons and choices.
extension ScalarTyper {
  private typealias Value = PlanExpression

  /// `x IS TRUE` is `x IS 1`, and false beside NULL.
  mutating func isTest(
    _ operand: Expression, _ test: IsTest, negated: Bool, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    let operand = try scalar(operand)
    guard test != .null else {
      return operand.with(.isNull(operand.expression, negated: negated))
    }
    let isEqual: Value = .compare(
      .equal, operand.expression, .integer(test == .yes ? "1" : "0"))
    return operand.with(negated ? .not(isEqual) : .call(.ifnull, [isEqual, .integer("0")]))
  }

  mutating func between(
    _ operand: Expression, _ low: Expression, _ high: Expression, negated: Bool,
    at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    let above = try bound(operand, .greaterOrEqual, low, at: span)
    let below = try bound(operand, .lessOrEqual, high, at: span)
    let isInside: Value = .call(
      .iif,
      [
        .and(above.expression, below.expression), .integer("1"),
        .call(
          .iif,
          [
            .or(
              .isNull(above.expression, negated: false), .isNull(below.expression, negated: false)),
            .null, .integer("0"),
          ]),
      ])
    let all = try combined([above, below], "BETWEEN", at: span)
    return all.with(negated ? .not(isInside) : isInside)
  }

  mutating func conditional(
    _ operand: Expression?, _ branches: [CaseBranch], _ otherwise: Expression?,
    at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    var subject: TypedScalar?
    if let operand { subject = try scalar(operand) }
    var used = subject.map { [$0] } ?? []
    var choices: [(condition: TypedScalar, result: TypedScalar)] = []
    for branch in branches {
      var condition = try scalar(branch.condition)
      if let subject {
        condition = try compare(.equal, subject, condition, at: branch.condition.span)
      }
      let result = try scalar(branch.result)
      used += [condition, result]
      choices.append((condition, result))
    }
    var value = TypedScalar(expression: .null)
    if let otherwise { value = try scalar(otherwise) }
    used.append(value)
    for choice in choices.reversed() {
      let (chosen, other) = (choice.result.expression, value.expression)
      guard chosen.valueClass.joined(with: other.valueClass) != nil else {
        throw .error(
          .blobMixed, "CASE cannot mix a binary value with another one",
          remedy: "use hex() or base64() on it", at: span)
      }
      value.expression = .call(.iif, [choice.condition.expression, chosen, other])
    }
    return try combined(used, "CASE", at: span).with(value.expression)
  }

  // MARK: IN

  mutating func membership(
    _ operand: Expression, _ set: Expression, negated: Bool, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    let operand = try scalar(operand)
    if let items = set.listItems {
      var list: [TypedScalar] = []
      for item in items { list.append(try scalar(item)) }
      let found = try isOne(operand, of: list, at: span)
      return negated ? found.with(.not(found.expression)) : found
    }
    let found = try isElement(operand, of: try scalar(set), at: span)
    return negated ? found.with(.not(found.expression)) : found
  }

  /// Whether the value is one of a list's: NULL when none is equal and one comparison is undecided.
  mutating func isOne(
    _ operand: TypedScalar, of list: [TypedScalar], at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    var equalities: [Value] = []
    for item in list {
      equalities.append(try compare(.equal, operand, item, at: span).expression)
    }
    let isFound = Value.any(equalities)
    let isUndecided = Value.any(equalities.map { .isNull($0, negated: false) })
    return try combined([operand] + list, "IN", at: span).with(
      .call(.iif, [isFound, .integer("1"), .call(.iif, [isUndecided, .null, .integer("0")])]))
  }

  /// Whether the value is an element of a JSON array.
  func isElement(
    _ operand: TypedScalar, of set: TypedScalar, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    guard set.expression.valueClass != .blob else {
      throw .error(.blobMixed, "IN cannot search a binary value", at: span)
    }
    return try combined([operand, set], "IN", at: span).with(
      .contains(array: set.expression, operand.expression))
  }
}

extension Expression {
  /// The items of `ARRAY[…]` or `ROW(…)`.
  var listItems: [Expression]? {
    switch kind {
    case .array(let items), .row(let items): items
    default: nil
    }
  }
}

extension PlanExpression {
  /// Whether any of them is true, as a tree whose depth is the logarithm of their number.
  static func any(_ conditions: [PlanExpression]) -> PlanExpression {
    func tree(_ part: ArraySlice<PlanExpression>) -> PlanExpression {
      guard part.count > 1 else { return part.first ?? .integer("0") }
      let middle = part.startIndex + part.count / 2
      return .or(tree(part[..<middle]), tree(part[middle...]))
    }
    return tree(conditions[...])
  }
}
