extension PlanExpression {
  /// The expression as its author would write it, for messages.
  package var ruleText: String {
    switch self {
    case .null: "NULL"
    case .integer(let digits), .real(let digits): digits
    case .text(let text): "'\(text.replacing("'", with: "''"))'"
    case .column(let name, _): name
    case .userID: "request.user_id()"
    case .claims: "request.jwt()"
    case .parameters: "request.parameters()"
    case .tokenParameter(let name): "token_parameters.\(name)"
    case .userParameter(let name): "user_parameters.\(name)"
    case .subscription: "subscription.parameters()"
    case .elementValue: "value"
    case .elementKey: "key"
    case .found(let step, let value): "value \(value + 1) found in step \(step + 1)"
    case .not(let operand): "NOT \(operand.operandText)"
    case .and(let left, let right): "\(left.operandText) AND \(right.operandText)"
    case .or(let left, let right): "\(left.operandText) OR \(right.operandText)"
    case .compare(let comparison, let left, let right):
      "\(left.operandText) \(comparison.rawValue) \(right.operandText)"
    case .isNull(let operand, let negated):
      "\(operand.operandText) IS \(negated ? "NOT " : "")NULL"
    case .moment(let column, let comparison, let seconds):
      "\(column) \(comparison.rawValue) \(Self.momentText(seconds))"
    case .arithmetic(let operation, let left, let right):
      "\(left.operandText) \(operation.rawValue) \(right.operandText)"
    case .concatenate(let left, let right): "\(left.operandText) || \(right.operandText)"
    case .cast(let operand, let type):
      "CAST(\(operand.ruleText) AS \(type.rawValue.uppercased()))"
    case .member(let operand, let path, let asValue, _):
      Self.memberText(operand.operandText, path, asValue: asValue)
    case .contains(let array, let operand): "\(operand.operandText) IN \(array.operandText)"
    case .call(let function, let arguments):
      listText ?? Self.callText(function, arguments.map(\.ruleText))
    }
  }

  /// `x IN ARRAY[…]`, if it was written so.
  private var listText: String? {
    guard case .call(.iif, let outer) = self, outer[1] == .integer("1"),
      case .call(.iif, let inner) = outer[2], inner[1] == .null, inner[2] == .integer("0")
    else { return nil }
    let pairs = outer[0].alternatives.map { alternative -> (PlanExpression, PlanExpression)? in
      guard case .compare(.equal, let value, let item) = alternative else { return nil }
      return (value, item)
    }
    guard let value = pairs[0]?.0, pairs.allSatisfy({ $0?.0 == value }) else { return nil }
    let items = pairs.compactMap { $0?.1.ruleText }.joined(separator: ", ")
    return "\(value.operandText) IN ARRAY[\(items)]"
  }

  /// The conditions that OR puts together here.
  private var alternatives: [PlanExpression] {
    guard case .or(let left, let right) = self else { return [self] }
    return left.alternatives + right.alternatives
  }

  /// With parentheses where it stands beside an operator.
  private var operandText: String {
    switch self {
    case .not, .and, .or, .compare, .isNull, .moment, .arithmetic, .concatenate, .contains:
      "(\(ruleText))"
    default: ruleText
    }
  }

  private static func momentText(_ seconds: Int) -> String {
    guard seconds != 0 else { return "now()" }
    let units = [("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)]
    let (unit, length) = units.first { seconds % $0.1 == 0 } ?? ("second", 1)
    let count = abs(seconds / length)
    let interval = "\(count) \(unit)\(count == 1 ? "" : "s")"
    return "now() \(seconds < 0 ? "-" : "+") interval '\(interval)'"
  }

  private static func memberText(
    _ operand: String, _ path: [String], asValue: Bool
  ) -> String {
    path.enumerated().reduce(operand) { text, step in
      let isLast = step.offset == path.count - 1
      let name = step.element.replacing("'", with: "''")
      return "\(text) \(isLast && asValue ? "->>" : "->") '\(name)'"
    }
  }

  private static func callText(_ function: Function, _ arguments: [String]) -> String {
    let name: String
    var shown = arguments
    switch function {
    case .substringFrom: name = "substring"
    case .uuidBlob: name = "uuid_blob"
    case .jsonArrayLength, .jsonArrayLengthAt: name = "json_array_length"
    case .jsonValid: name = "json_valid"
    case .jsonKeys: name = "json_keys"
    case .unixepoch, .unixepochSubsec, .datetime, .datetimeSubsec:
      name = function == .datetime || function == .datetimeSubsec ? "datetime" : "unixepoch"
      shown = [arguments[0]]
      if arguments[1] == "1" { shown.append("'unixepoch'") }
      if function == .datetimeSubsec || function == .unixepochSubsec { shown.append("'subsec'") }
    case .upper, .lower, .substring, .hex, .base64, .length, .typeof, .ifnull, .iif, .instr:
      name = function.rawValue
    }
    return "\(name)(\(shown.joined(separator: ", ")))"
  }
}

extension PlanGrant {
  /// A value that a step found is named by its table: `members.organisation_id`.
  package func text(
    of expression: PlanExpression, in definition: PlanDefinition, _ plan: SyncPlan
  ) -> String {
    guard case .found(let step, let value) = expression, case .lookup(let place, _) = steps[step]
    else { return text(of: expression) }
    let lookup = definition.lookups[place]
    return "\(plan.sources[lookup.source].name).\(lookup.values[value].ruleText)"
  }

  /// A value of the request, or of a step, in the rules' language.
  package func text(of expression: PlanExpression) -> String {
    switch expression {
    case .elementValue(let step), .elementKey(let step):
      guard steps.indices.contains(step), case .elements(let elements) = steps[step] else {
        return expression.ruleText
      }
      return "an element of \(elements.value.ruleText)"
    default: return expression.ruleText
    }
  }
}

extension PlanBranch {
  /// A value of the row in the rules' language.
  package func text(of expression: PlanExpression) -> String {
    guard case .elementValue(let index) = expression, elements.indices.contains(index) else {
      return expression.ruleText
    }
    return "an element of \(elements[index].value.ruleText)"
  }
}

extension PlanExpression {
  /// The conditions that AND puts together here.
  package var conjuncts: [PlanExpression] {
    guard case .and(let left, let right) = self else { return [self] }
    return left.conjuncts + right.conjuncts
  }
}
