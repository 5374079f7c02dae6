/// Types the scalar forms that every dialect has. What a name stands for, and which values may meet in
/// one operator, is the conforming type's own.
protocol ScalarTyper {
  var options: RuleOptions { get }
  /// Whether `a != b` is `NOT (a = b)`, which is true beside NULL, as in edition 3.
  var isUnequalToNull: Bool { get }

  /// An expression that must be a value.
  mutating func scalar(_ expression: Expression) throws(Diagnostic) -> TypedScalar
  mutating func column(
    _ column: ColumnReference, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar
  /// `qualifier.name(…)`
  mutating func qualifiedCall(_ call: FunctionCall) throws(Diagnostic) -> TypedScalar
  /// What is wrong with an operator or function whose operands have different homes.
  func mixed(_ left: TypedScalar, _ right: TypedScalar, _ symbol: String, at span: SourceSpan)
    -> Diagnostic
  mutating func warn(_ diagnostic: Diagnostic)
}

extension ScalarTyper {
  /// A form that is a value and nothing else.
  mutating func scalarForm(_ expression: Expression) throws(Diagnostic) -> TypedScalar {
    let span = expression.span
    switch expression.kind {
    case .null: return TypedScalar(expression: .null)
    case .boolean(let value): return TypedScalar(expression: .integer(value ? "1" : "0"))
    case .integer(let digits): return TypedScalar(expression: .integer(digits))
    case .real(let digits): return TypedScalar(expression: .real(digits))
    case .string(let text): return TypedScalar(expression: .text(text))
    case .column(let column): return try self.column(column, at: span)
    case .call(let call): return try self.call(call)
    case .unary(.not, let operand):
      let operand = try scalar(operand)
      return operand.with(.not(operand.expression))
    case .unary(.plus, let operand): return try scalar(operand)
    case .binary(let operation, let left, let right):
      return try binary(operation, left, right, at: span)
    case .isTest(let operand, let test, let negated):
      return try isTest(operand, test, negated: negated, at: span)
    case .between(let operand, let low, let high, let negated):
      return try between(operand, low, high, negated: negated, at: span)
    case .conditional(let operand, let branches, let otherwise):
      return try conditional(operand, branches, otherwise, at: span)
    case .cast(let operand, let type):
      let operand = try scalar(operand)
      return operand.with(.cast(operand.expression, type))
    case .member(let operand, let member, let asValue):
      let steps: [String] =
        switch member {
        case .key(let key): path(key)
        case .index(let index): [String(index)]
        }
      return try self.member(try scalar(operand), path: steps, asValue: asValue, at: span)
    case .membership(let operand, .expression(let set), let negated):
      return try membership(operand, set, negated: negated, at: span)
    case .subquery, .membership(_, .subquery, _):
      throw .error(.subqueryPosition, "subqueries are not supported here", at: span)
    case .unary, .membership, .array, .row, .interval:
      throw .error(.unsupportedOperator, "this expression is not supported here", at: span)
    }
  }

  // MARK: Columns and calls

  /// A column of the row of `source`.
  mutating func rowColumn(
    _ name: String, of table: CatalogTable?, suffix: String?, source: Int, at span: SourceSpan
  ) -> TypedScalar {
    let homes: Set<ValueHome> = [.source(source)]
    if name == "_table_suffix", let suffix {
      return TypedScalar(expression: .text(suffix), homes: homes)
    }
    guard let table else {
      return TypedScalar(
        expression: .column(name: name, .text(plain: false)), homes: homes)
    }
    guard let column = table.column(name) else {
      warn(
        .warning(
          .warnColumn, "\(table.schema).\(table.name) has no column \(name)",
          remedy: table.closestColumn(to: name).map { "perhaps \($0) is meant" }, at: span))
      return TypedScalar(expression: .null, homes: homes, isMissingColumn: true)
    }
    let conversion = ValueConversion(column.type, options: options)
    return TypedScalar(
      expression: .column(name: name, conversion), homes: homes,
      column: column)
  }

  private mutating func call(_ call: FunctionCall) throws(Diagnostic) -> TypedScalar {
    if call.qualifier != nil { return try qualifiedCall(call) }
    var arguments: [TypedScalar] = []
    for argument in call.arguments { arguments.append(try scalar(argument)) }
    let all = try combined(arguments, "\(call.displayName)()", at: call.span)
    return all.with(
      try FunctionTyper(call: call, arguments: arguments.map(\.expression)).typed(options: options))
  }

  /// The name that a request function takes, which must be a literal.
  func parameterName(of call: FunctionCall) throws(Diagnostic) -> String {
    if case .string(let name)? = call.arguments.first?.kind { return name }
    throw .error(
      .dynamicArgument, "\(call.displayName)() needs the parameter's name as a text", at: call.span)
  }

  // MARK: Operators

  private mutating func binary(
    _ operation: BinaryOperator, _ left: Expression, _ right: Expression, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    if let comparison = operation.comparison {
      if let now = try NowExpression(right) {
        return try self.moment(left, comparison, now, at: span)
      }
      if let now = try NowExpression(left) {
        return try self.moment(right, comparison.mirrored, now, at: span)
      }
    }
    let left = try scalar(left)
    let right = try scalar(right)
    if let comparison = operation.comparison {
      return try compare(comparison, left, right, at: span)
    }
    let both = try combined([left, right], operation.rawValue, at: span)
    if let arithmetic = operation.arithmetic {
      return both.with(.arithmetic(arithmetic, left.expression, right.expression))
    }
    switch operation {
    case .and: return both.with(.and(left.expression, right.expression))
    case .or: return both.with(.or(left.expression, right.expression))
    case .concatenate: return both.with(.concatenate(left.expression, right.expression))
    default:
      throw .error(
        .unsupportedOperator, "\(operation.rawValue) is not supported here", at: span)
    }
  }

  mutating func compare(
    _ comparison: PlanExpression.Comparison, _ left: TypedScalar, _ right: TypedScalar,
    at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    let both = try combined([left, right], comparison.rawValue, at: span)
    if left.expression.valueClass == .blob, right.expression.valueClass == .blob {
      throw .error(
        .blobMixed, "two binary values cannot be compared",
        remedy: "compare their hex()", at: span)
    }
    for (one, other) in [(left, right), (right, left)] {
      let lint = ComparisonLint(comparison: comparison, column: one, constant: other)
      if let finding = lint.finding(at: span) { warn(finding) }
    }
    if comparison == .notEqual, isUnequalToNull {
      return both.with(.not(.compare(.equal, left.expression, right.expression)))
    }
    return both.with(.compare(comparison, left.expression, right.expression))
  }

  // MARK: Joining scalars

  /// NULL with all that these values depend on, which must be of one home.
  func combined(
    _ scalars: [TypedScalar], _ symbol: String, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    var result = TypedScalar(expression: .null)
    for scalar in scalars {
      guard result.homes.union(scalar.homes).count < 2 else {
        throw mixed(result, scalar, symbol, at: span)
      }
      result = result.joined(with: scalar)
    }
    return result
  }

  // MARK: JSON

  /// The steps of a path: with `$` always, without it one key or, before `fixed_json_extract`, several.
  func path(_ key: String) -> [String] {
    if key.hasPrefix("$") { return JSONPath.components(key) }
    return options.fixedJSONExtract ? [key] : JSONPath.split(key)
  }

  func member(
    _ operand: TypedScalar, path: [String], asValue: Bool, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    if operand.expression.valueClass == .blob {
      throw .error(.blobMixed, "a binary value is not read as JSON", at: span)
    }
    return operand.with(
      .member(
        operand.expression, path: path, asValue: asValue, legacyNull: !options.fixedJSONExtract))
  }
}

/// Paths into JSON: only dots, no brackets.
enum JSONPath {
  /// The steps of a path that begins with `$`.
  static func components(_ path: String) -> [String] {
    Array(split(path).dropFirst())
  }

  static func split(_ path: String) -> [String] {
    path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }
}

extension BinaryOperator {
  fileprivate var comparison: PlanExpression.Comparison? {
    switch self {
    case .equal: .equal
    case .notEqual: .notEqual
    case .less: .less
    case .lessOrEqual: .lessOrEqual
    case .greater: .greater
    case .greaterOrEqual: .greaterOrEqual
    default: nil
    }
  }

  fileprivate var arithmetic: PlanExpression.Arithmetic? {
    switch self {
    case .add: .add
    case .subtract: .subtract
    case .multiply: .multiply
    case .divide: .divide
    default: nil
    }
  }
}

extension CatalogTable {
  /// A column whose name differs by letter case or underscores only.
  fileprivate func closestColumn(to name: String) -> String? {
    func plain(_ text: String) -> String { text.lowercased().filter { $0 != "_" } }
    return columns.first { plain($0.name) == plain(name) }?.name
  }
}
