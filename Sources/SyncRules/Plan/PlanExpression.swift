/// A scalar expression whose names are resolved and whose meaning no longer depends on a dialect.
///
/// Values are SQLite's: comparison knows no affinity, AND, OR and NOT take NULL as false.
package indirect enum PlanExpression: Codable, Sendable, Hashable {
  case null
  case integer(String)
  case real(String)
  case text(String)
  /// A column of the row.
  case column(name: String, ValueConversion)
  /// `request.user_id()`
  case userID
  /// `request.jwt()`
  case claims
  /// `request.parameters()`
  case parameters
  /// Member of the claim `parameters`.
  case tokenParameter(String)
  /// Member of what the client sent.
  case userParameter(String)
  /// `subscription.parameters()`
  case subscription
  /// The value of an element: of the branch's array at this place, or of the grant's step.
  case elementValue(Int)
  /// The place (or member name) of an element, likewise.
  case elementKey(Int)
  /// A value of the row that a grant's step found in its lookup.
  case found(step: Int, value: Int)
  case not(PlanExpression)
  case and(PlanExpression, PlanExpression)
  case or(PlanExpression, PlanExpression)
  case compare(Comparison, PlanExpression, PlanExpression)
  case isNull(PlanExpression, negated: Bool)
  /// A date or time column compared with the tick's time and so many seconds.
  case moment(column: String, Comparison, seconds: Int)
  case arithmetic(Arithmetic, PlanExpression, PlanExpression)
  case concatenate(PlanExpression, PlanExpression)
  case cast(PlanExpression, CastType)
  /// `->` (JSON text) or `->>` (SQL value) along a path. `legacyNull`: how JSON null was read before
  /// `fixed_json_extract`.
  case member(PlanExpression, path: [String], asValue: Bool, legacyNull: Bool)
  /// Whether a JSON array holds a value.
  case contains(array: PlanExpression, PlanExpression)
  case call(Function, [PlanExpression])

  package enum Comparison: String, Codable, Sendable {
    case equal = "="
    case notEqual = "<>"
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
  }

  package enum Arithmetic: String, Codable, Sendable {
    case add = "+"
    case subtract = "-"
    case multiply = "*"
    case divide = "/"
  }

  /// The scalar functions, with as many arguments as their case needs.
  package enum Function: String, Codable, Sendable {
    case upper
    case lower
    /// Text, start, length (NULL literal when absent means "to the end").
    case substring
    /// Text and start.
    case substringFrom
    case hex
    case base64
    case length
    case typeof
    case ifnull
    case iif
    case instr
    case uuidBlob
    /// JSON already moved to the path.
    case jsonArrayLength
    case jsonArrayLengthAt
    case jsonValid
    case jsonKeys
    /// Value and whether it counts seconds since 1970 (an integer literal), each with or without
    /// milliseconds.
    case unixepoch
    case unixepochSubsec
    case datetime
    case datetimeSubsec
  }

  /// The storage class, as far as it is known.
  package var valueClass: ValueClass {
    switch self {
    case .null: .null
    case .integer: .integer
    case .real: .real
    case .text, .claims, .parameters, .subscription: .text
    case .column(_, let conversion): conversion.valueClass
    case .userID, .tokenParameter, .userParameter, .elementValue, .elementKey, .found: .dynamic
    case .not, .and, .or, .compare, .isNull, .moment, .contains: .integer
    case .arithmetic(_, let left, let right): Self.arithmeticClass(left, right)
    case .concatenate: .text
    case .cast(let operand, let type): Self.castClass(operand.valueClass, type)
    case .member(_, _, let asValue, _): asValue ? .dynamic : .text
    case .call(let function, let arguments): Self.callClass(function, arguments)
    }
  }

  private static func arithmeticClass(
    _ left: PlanExpression, _ right: PlanExpression
  ) -> ValueClass {
    let classes = [left.valueClass, right.valueClass]
    if classes.contains(.null) { return .null }
    if classes == [.integer, .integer] { return .integer }
    return classes.contains(.real) ? .real : .dynamic
  }

  private static func castClass(_ operand: ValueClass, _ type: CastType) -> ValueClass {
    if operand == .null { return .null }
    switch type {
    case .text: return .text
    case .integer: return .integer
    case .real: return .real
    case .blob: return .blob
    case .numeric: return operand == .integer || operand == .real ? operand : .dynamic
    }
  }

  private static func callClass(
    _ function: Function, _ arguments: [PlanExpression]
  ) -> ValueClass {
    switch function {
    case .upper, .lower, .substring, .substringFrom, .hex, .base64, .typeof, .jsonKeys, .datetime,
      .datetimeSubsec:
      .text
    case .length, .instr, .jsonArrayLength, .jsonArrayLengthAt, .jsonValid, .unixepoch: .integer
    case .unixepochSubsec: .real
    case .uuidBlob: .blob
    case .ifnull:
      arguments[0].valueClass.joined(with: arguments[1].valueClass) ?? .blob
    case .iif:
      arguments[1].valueClass.joined(with: arguments[2].valueClass) ?? .blob
    }
  }
}
