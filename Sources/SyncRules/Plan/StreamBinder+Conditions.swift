internal import Foundation

/// WHERE and ON as conditions without NOT.
extension StreamBinder {
  mutating func condition(
    _ expression: Expression, negated: Bool = false
  ) throws(Diagnostic) -> StreamCondition {
    switch expression.kind {
    case .unary(.not, let operand):
      return try condition(operand, negated: !negated)
    case .binary(.and, let left, let right):
      let both = [
        try condition(left, negated: negated), try condition(right, negated: negated),
      ]
      return negated ? .either(both) : .all(both)
    case .binary(.or, let left, let right):
      let both = [
        try condition(left, negated: negated), try condition(right, negated: negated),
      ]
      return negated ? .all(both) : .either(both)
    case .binary(.equal, let left, let right) where !negated:
      return try equality(try scalar(left), try scalar(right), at: expression.span)
    case .binary(.notEqual, let left, let right) where negated && isUnequalToNull:
      return try equality(try scalar(left), try scalar(right), at: expression.span)
    case .binary(.overlap, let left, let right):
      guard !negated else { throw excluded("&&", at: expression.span) }
      return try overlap(left, right, at: expression.span)
    case .membership(let operand, .subquery(let select), let isNegated):
      guard negated == isNegated else { throw excluded("IN (SELECT …)", at: expression.span) }
      let operand = try scalar(operand)
      let column = try column(of: select)
      try requireAlphaRequest(operand, column.condition, at: select.span)
      return .all([
        column.condition, try equality(operand, column.value, at: expression.span),
      ])
    case .membership(let operand, .expression(let set), let isNegated):
      return try membership(
        operand, set, negated: negated != isNegated, at: expression.span)
    default:
      let scalar = try scalar(expression)
      return .scalar(negated ? scalar.with(.not(scalar.expression)) : scalar)
    }
  }

  /// A match is found by looking it up; that there is none cannot be looked up.
  private func excluded(_ what: String, at span: SourceSpan) -> Diagnostic {
    .error(
      edition < 3 ? .alphaStream : .crossTable,
      "rows cannot be chosen by what \(what) does not find",
      remedy: "keep the answer in a column of the table, and test that", at: span)
  }

  /// Values of one home are compared; those of two become a match.
  private mutating func equality(
    _ left: TypedScalar, _ right: TypedScalar, at span: SourceSpan
  ) throws(Diagnostic) -> StreamCondition {
    guard left.homes.union(right.homes).count > 1 else {
      return .scalar(try compare(.equal, left, right, at: span))
    }
    return .term(.link(left, right))
  }

  // MARK: IN

  private mutating func membership(
    _ operand: Expression, _ set: Expression, negated: Bool, at span: SourceSpan
  ) throws(Diagnostic) -> StreamCondition {
    if case .column(let column) = set.kind, column.qualifier == nil,
      let query = namedQuery(column.name)
    {
      guard !negated else { throw excluded("IN \(query.name)", at: span) }
      let operand = try scalar(operand)
      let found = try self.column(of: query, at: set.span)
      return .all([found.condition, try equality(operand, found.value, at: span)])
    }
    let operand = try scalar(operand)
    if let items = set.listItems {
      var list: [TypedScalar] = []
      for item in items { list.append(try scalar(item)) }
      if !negated, list.contains(where: { operand.homes.union($0.homes).count > 1 }) {
        return try isAny(operand, of: list, at: span)
      }
      let isOne = try isOne(operand, of: list, at: span)
      return .scalar(negated ? isOne.with(.not(isOne.expression)) : isOne)
    }
    let set = try scalar(set)
    try requireArray(set, at: span)
    if negated || set.homes.isEmpty {
      let isElement = try isElement(operand, of: set, at: span)
      return .scalar(negated ? isElement.with(.not(isElement.expression)) : isElement)
    }
    if edition < 3, operand.homes.isEmpty {
      throw .error(
        .alphaStream, "a constant left of IN is not available in edition 2",
        remedy: "set 'edition: 3', which allows it", at: span)
    }
    let number = try addElements(of: set, at: span)
    return .all([
      .term(.elements(number)), try equality(operand, element(number), at: span),
    ])
  }

  /// The value of the elements that stand at the position.
  func element(_ number: Int) -> TypedScalar {
    var value = elements[number].value.with(.elementValue(number))
    value.homes = [elements[number].home]
    value.elements = [number]
    return value
  }

  private mutating func isAny(
    _ operand: TypedScalar, of list: [TypedScalar], at span: SourceSpan
  ) throws(Diagnostic) -> StreamCondition {
    var alternatives: [StreamCondition] = []
    for item in list { alternatives.append(try equality(operand, item, at: span)) }
    return .either(alternatives)
  }

  /// A text that is written into the query shows whether it is an array.
  private func requireArray(_ set: TypedScalar, at span: SourceSpan) throws(Diagnostic) {
    guard set.homes.isEmpty else { return }
    guard case .text(let text) = set.expression, isArray(text) else {
      throw .error(
        .inList, "what follows IN is no JSON array",
        remedy: "write IN ARRAY['a', 'b'], or IN '[\"a\", \"b\"]'", at: span)
    }
  }

  private func isArray(_ text: String) -> Bool {
    (try? JSONSerialization.jsonObject(with: Data(text.utf8))) is [Any]
  }

  // MARK: &&

  /// One side of `&&`.
  private enum OverlapSide {
    case list([TypedScalar])
    /// A JSON array that is written into the query.
    case constant(TypedScalar)
    case values(TypedScalar, StreamCondition)
  }

  private mutating func overlap(
    _ left: Expression, _ right: Expression, at span: SourceSpan
  ) throws(Diagnostic) -> StreamCondition {
    switch (try overlapSide(left), try overlapSide(right)) {
    case (.values(let one, let first), .values(let other, let second)):
      return .all([first, second, try equality(one, other, at: span)])
    case (.values(let value, let condition), .list(let list)),
      (.list(let list), .values(let value, let condition)):
      return .all([condition, try isAny(value, of: list, at: span)])
    case (.values(let value, let condition), .constant(let array)),
      (.constant(let array), .values(let value, let condition)):
      return .all([condition, .scalar(try isElement(value, of: array, at: span))])
    case (.list(let list), .list(let others)):
      var alternatives: [StreamCondition] = []
      for item in list { alternatives.append(try isAny(item, of: others, at: span)) }
      return .either(alternatives)
    case (.list(let list), .constant(let array)), (.constant(let array), .list(let list)):
      var alternatives: [StreamCondition] = []
      for item in list { alternatives.append(.scalar(try isElement(item, of: array, at: span))) }
      return .either(alternatives)
    case (.constant, .constant):
      throw .error(
        edition < 3 ? .alphaStream : .crossTable, "both sides of && are constants", at: span)
    }
  }

  private mutating func overlapSide(_ side: Expression) throws(Diagnostic) -> OverlapSide {
    switch side.kind {
    case .subquery(let select):
      let column = try column(of: select)
      try requireAlphaRequest(nil, column.condition, at: select.span)
      return .values(column.value, column.condition)
    case .array(let items), .row(let items):
      var list: [TypedScalar] = []
      for item in items { list.append(try scalar(item)) }
      return .list(list)
    case .column(let column) where column.qualifier == nil:
      if let query = namedQuery(column.name) {
        let found = try self.column(of: query, at: side.span)
        return .values(found.value, found.condition)
      }
    default: break
    }
    let value = try scalar(side)
    try requireArray(value, at: side.span)
    if value.homes.isEmpty { return .constant(value) }
    let number = try addElements(of: value, at: side.span)
    return .values(element(number), .term(.elements(number)))
  }
}
