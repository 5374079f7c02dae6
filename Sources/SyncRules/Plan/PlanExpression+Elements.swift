extension PlanExpression {
  /// The expression with its elements under other numbers.
  func renumberingElements(_ number: (Int) -> Int) -> PlanExpression {
    func renumbered(_ expression: PlanExpression) -> PlanExpression {
      expression.renumberingElements(number)
    }
    switch self {
    case .elementValue(let element): return .elementValue(number(element))
    case .elementKey(let element): return .elementKey(number(element))
    case .null, .integer, .real, .text, .column, .userID, .claims, .parameters, .tokenParameter,
      .userParameter, .subscription, .found, .moment:
      return self
    case .not(let operand): return .not(renumbered(operand))
    case .and(let left, let right): return .and(renumbered(left), renumbered(right))
    case .or(let left, let right): return .or(renumbered(left), renumbered(right))
    case .compare(let comparison, let left, let right):
      return .compare(comparison, renumbered(left), renumbered(right))
    case .isNull(let operand, let negated): return .isNull(renumbered(operand), negated: negated)
    case .arithmetic(let operation, let left, let right):
      return .arithmetic(operation, renumbered(left), renumbered(right))
    case .concatenate(let left, let right):
      return .concatenate(renumbered(left), renumbered(right))
    case .cast(let operand, let type): return .cast(renumbered(operand), type)
    case .member(let operand, let path, let asValue, let legacyNull):
      return .member(
        renumbered(operand), path: path, asValue: asValue, legacyNull: legacyNull)
    case .contains(let array, let operand):
      return .contains(array: renumbered(array), renumbered(operand))
    case .call(let function, let arguments):
      return .call(function, arguments.map(renumbered))
    }
  }
}
