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
    case .arithmetic(let operation, let left, let right):
      "\(left.operandText) \(operation.rawValue) \(right.operandText)"
    case .concatenate(let left, let right): "\(left.operandText) || \(right.operandText)"
    case .cast(let operand, let type):
      "CAST(\(operand.ruleText) AS \(type.rawValue.uppercased()))"
    case .member(let operand, let path, let asValue, _):
      Self.memberText(operand.operandText, path, asValue: asValue)
    case .contains(let array, let operand): "\(operand.operandText) IN \(array.operandText)"
    case .call(let function, let arguments): Self.callText(function, arguments.map(\.ruleText))
    }
  }

  /// With parentheses where it stands beside an operator.
  private var operandText: String {
    switch self {
    case .not, .and, .or, .compare, .isNull, .arithmetic, .concatenate, .contains:
      "(\(ruleText))"
    default: ruleText
    }
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
