import SyncRules

/// Writes scalar expressions as SQL, and collects the conditions under which they have a value.
///
/// Where the rules language has a row error (a text that should be JSON and is none), the written
/// expression is NULL and a guard is false, so that the row contributes nothing.
struct ExpressionWriter {
  /// Conditions that must hold for the expressions written so far to have a value.
  private(set) var guards: [String] = []
  /// The columns that the expressions written so far read.
  private(set) var columns: Set<String> = []
  /// The instants, as SQL over the row, from which an expression written so far has another value.
  private(set) var moments: [String] = []

  mutating func value(_ expression: PlanExpression) -> SQLValue {
    switch expression {
    case .null: return .null
    case .integer(let digits): return SQLValue(integerLiteral(digits), .integer)
    case .real(let digits): return SQLValue("float8 \(SQLLiteral(digits))", .real)
    case .text(let text): return SQLValue("\(SQLLiteral(text))::text", .text)
    case .column(let name, let conversion):
      return ConversionWriter().value(column(name), conversion)
    case .userID:
      return SQLValue("sluice.request_member(r.claims, ARRAY['sub'])", .dynamic)
    case .claims: return SQLValue("sluice.request_text(r.claims)", .text)
    case .parameters: return SQLValue("sluice.request_text(r.parameters)", .text)
    case .tokenParameter(let name):
      return SQLValue(
        "sluice.request_member(r.claims, ARRAY['parameters', \(SQLLiteral(name))])", .dynamic)
    case .userParameter(let name):
      return SQLValue(
        "sluice.request_member(r.parameters, ARRAY[\(SQLLiteral(name))])", .dynamic)
    case .subscription: return SQLValue("sluice.request_text(r.subscription)", .text)
    case .elementValue(let index): return SQLValue("e\(index).value", .dynamic)
    case .elementKey(let index): return SQLValue("e\(index).place", .dynamic)
    case .found(let step, let value):
      return SQLValue("(f\(step).value::jsonb -> \(value))", .dynamic)
    case .not(let operand): return SQLValue("NOT (\(value(operand).truth))", .boolean)
    case .and(let left, let right):
      return SQLValue("(\(value(left).truth) AND \(value(right).truth))", .boolean)
    case .or(let left, let right):
      return SQLValue("(\(value(left).truth) OR \(value(right).truth))", .boolean)
    case .compare(let comparison, let left, let right):
      return compare(comparison, value(left), value(right))
    case .isNull(let operand, let negated):
      let test = negated ? "IS NOT NULL" : "IS NULL"
      return SQLValue("(\(value(operand).sql)) \(test)", .boolean)
    case .moment(let name, let comparison, let seconds):
      return moment(name, comparison, seconds)
    case .arithmetic(let operation, let left, let right):
      return arithmetic(operation.rawValue, value(left), value(right))
    case .concatenate(let left, let right):
      return SQLValue("(\(value(left).asText) || \(value(right).asText))", .text)
    case .cast(let operand, let type): return cast(value(operand), to: type)
    case .member(let operand, let path, let asValue, let legacyNull):
      let found = get(operand, path)
      return asValue
        ? SQLValue("sluice.json_value(\(found), \(legacyNull))", .dynamic)
        : SQLValue("sluice.json_text(\(found), \(legacyNull))", .text)
    case .contains(let array, let operand):
      let list = jsonArray(of: array)
      return SQLValue("sluice.json_contains(\(list), \(value(operand).asDynamic))", .boolean)
    case .call(let function, let arguments):
      return call(function, arguments)
    }
  }

  /// SQL for the elements of a value: a function in FROM with columns `place`, `value` and `key`.
  mutating func elements(of elements: PlanElements) -> String {
    let list = elements.takesObjects ? json(of: elements.value) : jsonArray(of: elements.value)
    guard elements.takesObjects else { return "sluice.array_elements(\(list))" }
    guards.append("(\(list) IS NULL OR json_typeof(\(list)) IN ('array', 'object', 'null'))")
    return "sluice.json_elements(\(list))"
  }

  private mutating func column(_ name: String) -> String {
    columns.insert(name)
    return SQLIdentifier("s").member(name).description
  }

  /// SQL for `expression` as a JSON array whose absence is a row error, unless it is NULL.
  mutating func jsonArray(of expression: PlanExpression) -> String {
    let list = json(of: expression)
    guards.append("(\(list) IS NULL OR sluice.is_array(\(list)))")
    return list
  }

  /// SQL of type `json`; a text that is no JSON is a row error.
  private mutating func json(of expression: PlanExpression) -> String {
    if case .column(let name, .json(let binary)) = expression {
      let column = column(name)
      if binary { return "\(column)::json" }
      guards.append("(\(column) IS NULL OR sluice.json_column(\(column)) IS NOT NULL)")
      return "sluice.json_column(\(column))"
    }
    if case .member(let operand, let path, asValue: false, let legacyNull) = expression {
      // Step by step, without printing and parsing between the steps.
      let found = get(operand, path)
      return legacyNull ? "sluice.json_or_null(\(found))" : found
    }
    let text = value(expression).asText
    if !expression.isRequestText { guards.append("sluice.json_ok(\(text))") }
    return "sluice.json(\(text))"
  }

  /// SQL of type `json` for the value at a path.
  private mutating func get(_ operand: PlanExpression, _ path: [String]) -> String {
    guard !path.isEmpty else { return json(of: operand) }
    let steps = "ARRAY[\(path.map { SQLLiteral($0).description }.joined(separator: ", "))]"
    guard path.allSatisfy(Self.isPlainStep) else {
      return "sluice.json_get(\(json(of: operand)), \(steps))"
    }
    if case .column(let name, .json(binary: true)) = operand {
      return "(\(column(name)) #> \(steps))::json"
    }
    return "(\(json(of: operand)) #> \(steps))"
  }

  /// Whether PostgreSQL takes a step of a path as the rules language does: `-1`, `01` and ` 1` are
  /// places of an array to one and names to the other.
  private static func isPlainStep(_ step: String) -> Bool {
    guard let first = step.utf8.first else { return true }
    if step == "0" { return true }
    if (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(first) {
      return step.utf8.count < 10
        && step.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
    return first > UInt8(ascii: "9")
  }

  private func integerLiteral(_ digits: String) -> String {
    digits.hasPrefix("-") ? "(\(digits))" : digits
  }

  // MARK: Operators

  /// Compares with the tick's time. Dates and times without a zone are those of UTC, as in the session.
  private mutating func moment(
    _ name: String, _ comparison: PlanExpression.Comparison, _ seconds: Int
  ) -> SQLValue {
    let instant = "(\(column(name)))::timestamptz"
    // The clock ticks in microseconds: what holds at the instant itself changes right after it.
    let holdsAtInstant = comparison == .greaterOrEqual || comparison == .less
    let turn =
      "(\(instant) - interval '\(seconds) seconds'"
      + (holdsAtInstant ? " + interval '1 microsecond')" : ")")
    if !moments.contains(turn) { moments.append(turn) }
    return SQLValue(
      "(\(instant) \(comparison.rawValue) sluice.tick_now() + interval '\(seconds) seconds')",
      .boolean)
  }

  private func compare(
    _ comparison: PlanExpression.Comparison, _ left: SQLValue, _ right: SQLValue
  ) -> SQLValue {
    let symbol = comparison.rawValue
    func boolean(_ sql: String) -> SQLValue { SQLValue(sql, .boolean) }
    switch (left.form.kind, right.form.kind) {
    case (.null, _), (_, .null):
      return boolean("NULL::boolean")
    case (.integer, .integer) where left.form == .integer && right.form == .integer:
      return boolean("(\(left.sql) \(symbol) \(right.sql))")
    case (.integer, .integer):
      return boolean("(\(left.asInteger) \(symbol) \(right.asInteger))")
    case (.real, .real):
      return boolean("(\(left.sql) \(symbol) \(right.sql))")
    case (.integer, .real):
      return boolean("(\(left.asInteger) \(symbol) ((\(right.sql))::text)::numeric)")
    case (.real, .integer):
      return boolean("(((\(left.sql))::text)::numeric \(symbol) \(right.asInteger))")
    case (.text, .text):
      return boolean("(\(left.asText) COLLATE \"C\" \(symbol) \(right.asText) COLLATE \"C\")")
    case (.dynamic, let other) where other != .blob:
      return dynamicComparison(comparison, left, right)
    case (let other, .dynamic) where other != .blob:
      return dynamicComparison(comparison, left, right)
    default:
      // Numbers come before texts, texts before blobs, whatever the values are.
      let rank = { (form: SQLValue.Form.Kind) in
        switch form {
        case .null: 0
        case .integer, .real: 1
        case .text, .dynamic: 2
        case .blob: 3
        }
      }
      let isLess = rank(left.form.kind) < rank(right.form.kind)
      let result =
        switch comparison {
        case .equal: false
        case .notEqual: true
        case .less, .lessOrEqual: isLess
        case .greater, .greaterOrEqual: !isLess
        }
      return boolean(
        "CASE WHEN (\(left.sql)) IS NOT NULL AND (\(right.sql)) IS NOT NULL "
          + "THEN \(result ? "TRUE" : "FALSE") END")
    }
  }

  private func dynamicComparison(
    _ comparison: PlanExpression.Comparison, _ left: SQLValue, _ right: SQLValue
  ) -> SQLValue {
    switch comparison {
    case .equal, .notEqual:
      SQLValue("(\(left.asDynamic) \(comparison.rawValue) \(right.asDynamic))", .boolean)
    default:
      SQLValue(
        "(sluice.dyn_compare(\(left.asDynamic), \(right.asDynamic)) \(comparison.rawValue) 0)",
        .boolean)
    }
  }

  private func arithmetic(_ symbol: String, _ left: SQLValue, _ right: SQLValue) -> SQLValue {
    switch (left.form.kind, right.form.kind) {
    case (.null, _), (_, .null):
      return .null
    case (.integer, .integer):
      return SQLValue(
        "sluice.integer_arith('\(symbol)', \(left.asInteger), \(right.asInteger))", .integer)
    case (.real, _), (_, .real):
      return SQLValue(
        "sluice.real_arith('\(symbol)', \(left.asReal), \(right.asReal))", .real)
    default:
      return SQLValue(
        "sluice.dyn_arith('\(symbol)', \(left.asDynamicNumber), \(right.asDynamicNumber))",
        .dynamic)
    }
  }

  private func cast(_ operand: SQLValue, to type: CastType) -> SQLValue {
    if operand.form == .null { return .null }
    switch type {
    case .text: return SQLValue(operand.asText, .text)
    case .integer: return SQLValue(operand.asInteger, .integer)
    case .real: return SQLValue(operand.asReal, .real)
    case .blob: return SQLValue(operand.asBytes, .blob)
    case .numeric:
      switch operand.form.kind {
      case .integer, .real, .null: return operand
      case .text, .blob: return SQLValue(operand.asDynamicNumber, .dynamic)
      case .dynamic: return SQLValue("sluice.dyn_number(\(operand.sql))", .dynamic)
      }
    }
  }

  // MARK: Functions

  private mutating func call(
    _ function: PlanExpression.Function, _ arguments: [PlanExpression]
  ) -> SQLValue {
    switch function {
    case .jsonArrayLength, .jsonArrayLengthAt:
      return SQLValue("sluice.json_length(\(json(of: arguments[0])))", .integer)
    case .jsonKeys:
      let object = json(of: arguments[0])
      guards.append("(\(object) IS NULL OR json_typeof(\(object)) = 'object')")
      return SQLValue("sluice.json_names(\(object))", .text)
    default: break
    }
    let values = arguments.map { value($0) }
    let first = values[0]
    switch function {
    case .upper, .lower:
      return SQLValue(
        "\(function.rawValue)(\(first.asText) COLLATE \"und-x-icu\") COLLATE \"default\"", .text)
    case .substring:
      let isNull = "(\(values[2].sql)) IS NOT NULL"
      return SQLValue(
        "CASE WHEN \(isNull) THEN sluice.text_substring(\(first.asText), "
          + "\(values[1].asInteger), \(values[2].asInteger)) END", .text)
    case .substringFrom:
      return SQLValue(
        "sluice.text_substring(\(first.asText), \(values[1].asInteger), NULL)", .text)
    case .hex:
      return SQLValue("coalesce(upper(encode(\(first.asBytes), 'hex')), '')", .text)
    case .base64: return SQLValue("sluice.base64(\(first.asBytes))", .text)
    case .length:
      return SQLValue(
        first.form == .blob
          ? "length(\(first.sql))" : "sluice.text_length(\(first.asText))", .integer)
    case .typeof: return SQLValue(typeName(first), .text)
    case .ifnull: return either(values[0], values[1]) { "coalesce(\($0), \($1))" }
    case .iif:
      return either(values[1], values[2]) {
        "CASE WHEN \(first.truth) THEN \($0) ELSE \($1) END"
      }
    case .instr:
      if first.form == .blob, values[1].form == .blob {
        return SQLValue("position(\(values[1].sql) IN \(first.sql))", .integer)
      }
      return SQLValue(
        "sluice.text_instr(\(first.asText), \(values[1].asText))", .integer)
    case .uuidBlob:
      let text = first.asText
      let pattern = "'^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'"
      guards.append("((\(text)) IS NULL OR \(text) ~ \(pattern))")
      return SQLValue(
        "CASE WHEN \(text) ~ \(pattern) THEN decode(translate(\(text), '-', ''), 'hex') END",
        .blob)
    case .jsonValid: return SQLValue("sluice.json_valid(\(first.asText))", .boolean)
    case .unixepoch, .unixepochSubsec, .datetime, .datetimeSubsec:
      return time(function, first, epoch: arguments[1] == .integer("1"))
    case .jsonArrayLength, .jsonArrayLengthAt, .jsonKeys:
      return .null
    }
  }

  private func typeName(_ value: SQLValue) -> String {
    let name: String
    switch value.form.kind {
    case .null: return "'null'::text"
    case .dynamic: return "sluice.dyn_typeof(\(value.sql))"
    case .integer: name = "integer"
    case .real: name = "real"
    case .text: name = "text"
    case .blob: name = "blob"
    }
    return "CASE WHEN (\(value.sql)) IS NULL THEN 'null' ELSE '\(name)' END"
  }

  /// One of two values, in a form that carries both.
  private func either(
    _ left: SQLValue, _ right: SQLValue, _ make: (String, String) -> String
  ) -> SQLValue {
    let kinds = Set([left.form.kind, right.form.kind]).subtracting([.null])
    guard let kind = kinds.first else { return .null }
    if kinds.count > 1 { return SQLValue(make(left.asDynamic, right.asDynamic), .dynamic) }
    switch kind {
    case .integer:
      return SQLValue(
        make("(\(left.asInteger))::numeric", "(\(right.asInteger))::numeric"), .integer)
    case .real: return SQLValue(make(left.asReal, right.asReal), .real)
    case .text: return SQLValue(make(left.asText, right.asText), .text)
    case .blob: return SQLValue(make(left.sql, right.sql), .blob)
    case .dynamic, .null: return SQLValue(make(left.asDynamic, right.asDynamic), .dynamic)
    }
  }

  private func time(
    _ function: PlanExpression.Function, _ value: SQLValue, epoch: Bool
  ) -> SQLValue {
    let input = value.asDynamic
    switch function {
    case .unixepoch:
      return SQLValue("floor(sluice.epoch_seconds(\(input), \(epoch)))", .integer)
    case .unixepochSubsec:
      return SQLValue("sluice.epoch_seconds(\(input), \(epoch))::float8", .real)
    default:
      let fraction = function == .datetimeSubsec ? ".MS" : ""
      return SQLValue(
        "to_char(sluice.moment(\(input), \(epoch)), 'YYYY-MM-DD HH24:MI:SS\(fraction)')", .text)
    }
  }
}

extension SQLValue.Form {
  enum Kind {
    case null
    case integer
    case real
    case text
    case blob
    case dynamic
  }

  /// The storage class.
  var kind: Kind {
    switch self {
    case .null: .null
    case .boolean, .integer: .integer
    case .real: .real
    case .text, .plain: .text
    case .blob: .blob
    case .dynamic: .dynamic
    }
  }
}

extension PlanExpression {
  /// What a request brings was checked when it arrived.
  fileprivate var isRequestText: Bool {
    self == .claims || self == .parameters || self == .subscription
  }
}
