extension PlanExpression {
  /// The values of the request that it reads, each once.
  package var requestValues: [PlanExpression] {
    var values: [PlanExpression] = []
    for value in reads where !values.contains(value) { values.append(value) }
    return values
  }

  private var reads: [PlanExpression] {
    switch self {
    case .userID, .claims, .parameters, .tokenParameter, .userParameter, .subscription: [self]
    case .member(.claims, _, _, _), .member(.parameters, _, _, _), .member(.subscription, _, _, _):
      [self]
    case .not(let operand), .isNull(let operand, _), .cast(let operand, _),
      .member(let operand, _, _, _):
      operand.reads
    case .and(let left, let right), .or(let left, let right), .compare(_, let left, let right),
      .arithmetic(_, let left, let right), .concatenate(let left, let right),
      .contains(let left, let right):
      left.reads + right.reads
    case .call(_, let arguments): arguments.flatMap(\.reads)
    case .null, .integer, .real, .text, .column, .moment, .elementValue, .elementKey, .found: []
    }
  }
}
