/// An expression of the rules language: its text, and what the reference says it comes to.
indirect enum ReferenceExpression {
  case literal(ReferenceValue)
  case column(String)
  case not(ReferenceExpression)
  case and(ReferenceExpression, ReferenceExpression)
  case or(ReferenceExpression, ReferenceExpression)
  /// `=`, `!=`, `<`, `<=`, `>` or `>=`.
  case compare(String, ReferenceExpression, ReferenceExpression)
  case isNull(ReferenceExpression, negated: Bool)
  /// `+`, `-`, `*` or `/`.
  case arithmetic(String, ReferenceExpression, ReferenceExpression)
  case concatenate(ReferenceExpression, ReferenceExpression)
  case cast(ReferenceExpression, String)
  case call(String, [ReferenceExpression])
  /// `->` or `->>`.
  case member(ReferenceExpression, String, asValue: Bool)
  case contains(ReferenceExpression, list: ReferenceExpression)
  /// Edition 3: `CASE WHEN … THEN … ELSE … END`.
  case choose(ReferenceExpression, ReferenceExpression, ReferenceExpression)
  /// Edition 3: `IS TRUE`, which is `IS 1`.
  case isTrue(ReferenceExpression)

  var text: String {
    switch self {
    case .literal(.null): "NULL"
    case .literal(.integer(let value)): value < 0 ? "(\(value))" : "\(value)"
    case .literal(.real(let value)): value < 0 ? "(\(value))" : "\(value)"
    case .literal(.text(let text)): "'\(text.replacing("'", with: "''"))'"
    case .literal(.blob(let bytes)): "CAST('\(String(decoding: bytes, as: UTF8.self))' AS blob)"
    case .column(let name): name
    case .not(let operand): "(NOT \(operand.text))"
    case .and(let left, let right): "(\(left.text) AND \(right.text))"
    case .or(let left, let right): "(\(left.text) OR \(right.text))"
    case .compare(let symbol, let left, let right): "(\(left.text) \(symbol) \(right.text))"
    case .isNull(let operand, let negated): "(\(operand.text) IS \(negated ? "NOT " : "")NULL)"
    case .arithmetic(let symbol, let left, let right): "(\(left.text) \(symbol) \(right.text))"
    case .concatenate(let left, let right): "(\(left.text) || \(right.text))"
    case .cast(let operand, let type): "CAST(\(operand.text) AS \(type))"
    case .call(let name, let arguments):
      "\(name)(\(arguments.map(\.text).joined(separator: ", ")))"
    case .member(let operand, let path, let asValue):
      "(\(operand.text) \(asValue ? "->>" : "->") '\(path)')"
    case .contains(let operand, let list): "(\(operand.text) IN \(list.text))"
    case .choose(let condition, let left, let right):
      "CASE WHEN \(condition.text) THEN \(left.text) ELSE \(right.text) END"
    case .isTrue(let operand): "(\(operand.text) IS TRUE)"
    }
  }

  /// - Parameter edition3: whether `!=` is the opposite of `=`, also of NULL.
  /// - Throws: `RowError`, or `Unmodelled`.
  func value(_ row: [String: ReferenceValue], edition3: Bool) throws -> ReferenceValue {
    func of(_ operand: ReferenceExpression) throws -> ReferenceValue {
      try operand.value(row, edition3: edition3)
    }
    switch self {
    case .literal(let value): return value
    case .column(let name): return row[name] ?? .null
    case .not(let operand): return Self.boolean(!(try of(operand).isTrue))
    case .and(let left, let right):
      let (left, right) = (try of(left), try of(right))
      return Self.boolean(left.isTrue && right.isTrue)
    case .or(let left, let right):
      let (left, right) = (try of(left), try of(right))
      return Self.boolean(left.isTrue || right.isTrue)
    case .compare(let symbol, let left, let right):
      return try Self.compare(symbol, of(left), of(right), edition3: edition3)
    case .isNull(let operand, let negated):
      return Self.boolean((try of(operand) == .null) != negated)
    case .arithmetic(let symbol, let left, let right):
      return try Self.arithmetic(symbol, of(left), of(right))
    case .concatenate(let left, let right):
      let (left, right) = (try of(left).asText, try of(right).asText)
      guard let left, let right else { return .null }
      return .text(left + right)
    case .cast(let operand, let type): return try Self.cast(of(operand), type)
    case .call(let name, let arguments):
      return try ReferenceFunctions.call(name, arguments.map(of))
    case .member(let operand, let path, let asValue):
      return try ReferenceFunctions.member(of(operand), path, asValue: asValue)
    case .contains(let operand, let list):
      return try ReferenceFunctions.contains(of(operand), list: of(list))
    case .choose(let condition, let left, let right):
      return try ReferenceFunctions.call("iif", [of(condition), of(left), of(right)])
    case .isTrue(let operand):
      return Self.boolean(try of(operand).compared(to: .integer(1)) == 0)
    }
  }

  static func boolean(_ value: Bool) -> ReferenceValue { .integer(value ? 1 : 0) }

  private static func compare(
    _ symbol: String, _ left: ReferenceValue, _ right: ReferenceValue, edition3: Bool
  ) throws -> ReferenceValue {
    guard let order = try left.compared(to: right) else {
      return symbol == "!=" && edition3 ? .integer(1) : .null
    }
    switch symbol {
    case "=": return boolean(order == 0)
    case "!=": return boolean(order != 0)
    case "<": return boolean(order < 0)
    case "<=": return boolean(order <= 0)
    case ">": return boolean(order > 0)
    default: return boolean(order >= 0)
    }
  }

  private static func arithmetic(
    _ symbol: String, _ left: ReferenceValue, _ right: ReferenceValue
  ) throws -> ReferenceValue {
    guard let left = try left.asNumber(), let right = try right.asNumber() else { return .null }
    if case .integer(let left) = left, case .integer(let right) = right {
      let (value, overflow) =
        switch symbol {
        case "+": left.addingReportingOverflow(right)
        case "-": left.subtractingReportingOverflow(right)
        case "*": left.multipliedReportingOverflow(by: right)
        default: right == 0 ? (0, false) : left.dividedReportingOverflow(by: right)
        }
      guard !overflow else { throw ReferenceValue.Unmodelled() }
      return symbol == "/" && right == 0 ? .null : .integer(value)
    }
    let (a, b) = (try double(left), try double(right))
    let value =
      switch symbol {
      case "+": a + b
      case "-": a - b
      case "*": a * b
      default: a / b
      }
    if symbol == "/", b == 0 { return .null }
    return .real(try ReferenceValue.moderate(value))
  }

  private static func double(_ value: ReferenceValue) throws -> Double {
    switch value {
    case .integer(let value): return try ReferenceValue.realPrefix("\(value)")
    case .real(let value): return value
    default: throw ReferenceValue.Unmodelled()
    }
  }

  private static func cast(
    _ value: ReferenceValue, _ type: String
  ) throws -> ReferenceValue {
    if value == .null { return .null }
    switch (type, value) {
    case ("text", _): return .text(value.asText ?? "")
    case ("blob", _): return .blob(value.asBytes)
    case ("integer", .integer), ("numeric", .integer), ("numeric", .real), ("real", .real):
      return value
    case ("integer", .real(let real)):
      guard abs(real) < 1e37 else { throw ReferenceValue.Unmodelled() }
      return .integer(Int128(real.rounded(.down)))
    case ("integer", _): return .integer(try ReferenceValue.integerPrefix(value.asText ?? ""))
    case ("real", .integer): return .real(try double(value))
    case ("real", _): return .real(try ReferenceValue.realPrefix(value.asText ?? ""))
    default: return try ReferenceValue.numberPrefix(value.asText ?? "")
    }
  }
}
