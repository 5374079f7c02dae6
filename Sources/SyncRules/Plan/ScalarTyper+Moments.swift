/// Columns compared with the present.
extension ScalarTyper {
  /// `operand comparison now() ± interval`
  mutating func moment(
    _ operand: Expression, _ comparison: PlanExpression.Comparison, _ now: NowExpression,
    at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    guard comparison != .equal, comparison != .notEqual else {
      throw .error(
        .now, "nothing is equal to now() for longer than a moment",
        remedy: "compare with <, <=, > or >=", at: span)
    }
    var seconds = now.seconds
    var operand = operand
    if let (value, text) = operand.shiftedByInterval, case .binary(let sign, _, _) = operand.kind {
      let interval = try NowExpression.seconds(of: text, at: operand.span)
      seconds += sign == .add ? -interval : interval
      operand = value
    }
    let scalar = try scalar(operand)
    if scalar.isMissingColumn { return scalar.with(.null) }
    guard case .column(let name, _) = scalar.expression else {
      throw .error(
        .now, "only a column can be compared with now()", remedy: NowExpression.example, at: span)
    }
    if let column = scalar.column {
      let type = column.type.base
      guard type.schema == "pg_catalog", ["timestamptz", "timestamp", "date"].contains(type.name)
      else {
        throw .error(
          .now, "\(name) is \(type.name), and no date or timestamp to compare with now()",
          remedy: NowExpression.example, at: span)
      }
    }
    return scalar.with(.moment(column: name, comparison, seconds: seconds))
  }

  /// A bound of BETWEEN.
  mutating func bound(
    _ operand: Expression, _ comparison: PlanExpression.Comparison, _ limit: Expression,
    at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    if let now = try NowExpression(limit) {
      return try moment(operand, comparison, now, at: span)
    }
    if let now = try NowExpression(operand) {
      return try moment(limit, comparison.mirrored, now, at: span)
    }
    return try compare(comparison, try scalar(operand), try scalar(limit), at: span)
  }
}

extension PlanExpression.Comparison {
  /// The comparison with its sides exchanged.
  var mirrored: PlanExpression.Comparison {
    switch self {
    case .equal, .notEqual: self
    case .less: .greater
    case .lessOrEqual: .greaterOrEqual
    case .greater: .less
    case .greaterOrEqual: .lessOrEqual
    }
  }
}
