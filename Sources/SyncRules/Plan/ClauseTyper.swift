/// Resolves the names of an expression and tells conditions on the row, conditions on the request
/// and matches between the two apart.
struct ClauseTyper {
  let scope: QueryScope
  private(set) var warnings: [Diagnostic] = []

  init(scope: QueryScope) {
    self.scope = scope
  }

  /// An expression where a condition may stand.
  mutating func clause(_ expression: Expression) throws(Diagnostic) -> Clause {
    switch expression.kind {
    case .binary(.and, let left, let right):
      return try and(try clause(left), try clause(right), at: expression.span)
    case .binary(.or, let left, let right):
      return try or(try clause(left), try clause(right), at: expression.span)
    case .binary(.equal, let left, let right):
      return try equal(try clause(left), try clause(right), at: expression.span)
    case .membership(let operand, .expression(let set), negated: false) where set.listItems == nil:
      return try membership(try clause(operand), try clause(set), at: expression.span)
    case .column(let column) where column.qualifier?.name == "bucket":
      guard case .data(let parameters) = scope.dialect else {
        throw .error(
          .unknownRef, "bucket parameters are not available in parameter queries",
          at: expression.span)
      }
      if let parameters, !parameters.contains(column.name.name) {
        throw .error(
          .paramCoverage, "the definition has no parameter \(column.name.name)",
          remedy: "name one that its parameter queries select", at: expression.span)
      }
      return .bucketParameter(column.name.name)
    default:
      return .scalar(try scalarForm(expression))
    }
  }

  /// An expression that must be a value.
  mutating func scalar(_ expression: Expression) throws(Diagnostic) -> TypedScalar {
    switch try clause(expression) {
    case .scalar(let scalar):
      return scalar
    case .bucketParameter(let name):
      throw .error(
        .paramOperator, "bucket.\(name) can only be compared with =, or stand left of IN",
        at: expression.span)
    case .match:
      throw .error(
        .matchPosition,
        "a condition that matches rows with parameters cannot be used as a value",
        remedy: "let it stand in WHERE, joined by AND or OR", at: expression.span)
    }
  }

  mutating func warn(_ diagnostic: Diagnostic) {
    warnings.append(diagnostic)
  }

  // MARK: Matches

  private mutating func equal(
    _ left: Clause, _ right: Clause, at span: SourceSpan
  ) throws(Diagnostic) -> Clause {
    switch (left, right) {
    case (.bucketParameter, .bucketParameter):
      throw .error(
        .bothSidesParam, "both sides of = are bucket parameters",
        remedy: "compare each with a column", at: span)
    case (.bucketParameter(let name), .scalar(let scalar)),
      (.scalar(let scalar), .bucketParameter(let name)):
      return match(.bucketParameter(name), scalar.expression, expands: false)
    case (.scalar(let left), .scalar(let right)):
      if left.usesRow, right.usesRequest, !right.usesRow {
        return match(
          .request(right.expression, expands: false), left.expression, expands: false,
          isAuthenticated: right.isAuthenticated)
      }
      if right.usesRow, left.usesRequest, !left.usesRow {
        return match(
          .request(left.expression, expands: false), right.expression, expands: false,
          isAuthenticated: left.isAuthenticated)
      }
      return .scalar(try compare(.equal, left, right, at: span))
    default:
      throw .error(
        .matchPosition, "a condition that matches rows with parameters cannot be compared",
        at: span)
    }
  }

  private mutating func membership(
    _ operand: Clause, _ set: Clause, at span: SourceSpan
  ) throws(Diagnostic) -> Clause {
    switch (operand, set) {
    case (_, .bucketParameter(let name)):
      throw .error(
        .paramInRight, "bucket.\(name) cannot stand right of IN",
        remedy: "let a parameter query give one bucket per element", at: span)
    case (.bucketParameter(let name), .scalar(let set)):
      return match(.bucketParameter(name), set.expression, expands: true)
    case (.scalar(let operand), .scalar(let set)):
      if operand.usesRow, set.usesRequest {
        return match(
          .request(set.expression, expands: true), operand.expression, expands: false,
          isAuthenticated: set.isAuthenticated)
      }
      if operand.usesRequest, set.usesRow {
        return match(
          .request(operand.expression, expands: false), set.expression, expands: true,
          isAuthenticated: operand.isAuthenticated)
      }
      return .scalar(try isElement(operand, of: set, at: span))
    default:
      throw .error(
        .matchPosition, "a condition that matches rows with parameters cannot be used as a value",
        at: span)
    }
  }

  private func match(
    _ slot: MatchSlot, _ value: PlanExpression, expands: Bool, isAuthenticated: Bool = false
  ) -> Clause {
    return .match([
      MatchBranch(parts: [
        .init(slot: slot, value: value, expands: expands, isAuthenticated: isAuthenticated)
      ])
    ])
  }

  // MARK: AND, OR

  private func and(
    _ left: Clause, _ right: Clause, at span: SourceSpan
  ) throws(Diagnostic) -> Clause {
    if case .scalar(let left) = left, case .scalar(let right) = right,
      left.homes.union(right.homes).count < 2
    {
      return .scalar(left.joined(with: right).with(.and(left.expression, right.expression)))
    }
    var branches: [MatchBranch] = []
    for first in Self.branches(left) {
      for second in Self.branches(right) {
        let branch = MatchBranch(
          parts: first.parts + second.parts, gates: first.gates + second.gates,
          filters: first.filters + second.filters)
        if branch.parts.count(where: \.expands) > 1 {
          throw .error(
            .twoIn, "only one condition may match the elements of a column", at: span)
        }
        if branch.parts.count(where: { $0.slot.expands }) > 1 {
          throw .error(
            .twoArrays, "only one condition may match the elements of a request value",
            at: span)
        }
        branches.append(branch)
      }
    }
    return .match(branches)
  }

  private func or(
    _ left: Clause, _ right: Clause, at span: SourceSpan
  ) throws(Diagnostic) -> Clause {
    if case .scalar(let left) = left, case .scalar(let right) = right {
      return .scalar(
        try combined([left, right], "OR", at: span).with(.or(left.expression, right.expression)))
    }
    let branches = Self.branches(left) + Self.branches(right)
    let needs = Set(branches.map { MatchNeeds($0) })
    guard needs.count == 1 else {
      throw .error(
        .orParams, "both sides of OR must match the same parameters",
        remedy: "write a query for each side", at: span)
    }
    return .match(branches)
  }

  /// A clause as branches of which one must hold.
  static func branches(_ clause: Clause) -> [MatchBranch] {
    switch clause {
    case .match(let branches):
      return branches
    case .bucketParameter(let name):
      return [MatchBranch(parts: [.init(slot: .bucketParameter(name), value: .integer("1"))])]
    case .scalar(let scalar):
      return scalar.usesRequest
        ? [MatchBranch(gates: [scalar])] : [MatchBranch(filters: [scalar.expression])]
    }
  }
}

/// What a request must bring for a branch: equal on both sides of OR.
private struct MatchNeeds: Hashable {
  var slots: [MatchSlot: Int] = [:]
  var gates: Set<PlanExpression> = []

  init(_ branch: MatchBranch) {
    for part in branch.parts {
      if case .bucketParameter = part.slot {
        slots[part.slot] = 1
      } else {
        slots[part.slot, default: 0] += 1
      }
    }
    gates = Set(branch.gates.map(\.expression))
  }
}

extension MatchSlot {
  var expands: Bool {
    if case .request(_, expands: true) = self { return true }
    return false
  }
}
