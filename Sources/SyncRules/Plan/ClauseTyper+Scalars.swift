extension ClauseTyper {
  /// The forms that are values and nothing else.
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
    case .binary(let operation, let left, let right):
      return try binary(operation, left, right, at: span)
    case .isTest(let operand, .null, let negated):
      let operand = try scalar(operand)
      return operand.with(.isNull(operand.expression, negated: negated))
    case .cast(let operand, let type):
      let operand = try scalar(operand)
      return operand.with(.cast(operand.expression, type))
    case .member(let operand, .key(let key), let asValue):
      let operand = try scalar(operand)
      return try member(operand, path: path(key), asValue: asValue, at: span)
    case .member(_, .index, _):
      throw .error(
        .jsonMember, "the right side of -> and ->> must be a text",
        remedy: "write ->> '0' for an array's first element", at: span)
    case .subquery, .membership(_, .subquery, _):
      throw .error(.subqueryPosition, "subqueries are not supported here", at: span)
    case .membership(_, .list, _):
      throw .error(
        .unsupportedOperator, "IN with a list is not supported here",
        remedy: "write IN '[1, 2]' with a JSON array", at: span)
    case .unary, .isTest, .between, .membership, .conditional, .array, .row:
      throw .error(.unsupportedOperator, "this expression is not supported here", at: span)
    }
  }

  // MARK: Names

  private mutating func column(
    _ column: ColumnReference, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    let name = column.name.name
    switch column.qualifier?.name {
    case "token_parameters", "user_parameters":
      return try requestMember(column.qualifier?.name ?? "", name, at: span)
    case let qualifier? where scope.elementQualifiers.contains(qualifier):
      return try element(name, at: span)
    case nil where scope.readsElements:
      return try element(name, at: span)
    case let qualifier
    where scope.qualifier != nil
      && (qualifier == nil || qualifier == scope.qualifier):
      return try rowColumn(name, at: span)
    case let qualifier?:
      throw .error(
        .unknownRef, "\(qualifier) is not the table of this query",
        remedy: scope.qualifier.map { "write \($0).\(name)" }, at: span)
    case nil:
      throw .error(
        .unknownRef, "\(name) is a column, but the query reads no table", at: span)
    }
  }

  private mutating func rowColumn(
    _ name: String, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    if name == "_table_suffix", let suffix = scope.suffix {
      return TypedScalar(expression: .text(suffix), usesRow: true)
    }
    guard let table = scope.table else {
      return TypedScalar(expression: .column(name: name, .text(plain: false)), usesRow: true)
    }
    guard let column = table.column(name) else {
      warn(
        .warning(
          .warnColumn, "\(table.schema).\(table.name) has no column \(name)",
          remedy: table.closestColumn(to: name).map { "perhaps \($0) is meant" }, at: span))
      return TypedScalar(expression: .null, usesRow: true, isMissingColumn: true)
    }
    let conversion = ValueConversion(column.type, options: scope.options)
    return TypedScalar(expression: .column(name: name, conversion), usesRow: true)
  }

  private func element(_ name: String, at span: SourceSpan) throws(Diagnostic) -> TypedScalar {
    switch name {
    case "value":
      return TypedScalar(expression: .elementValue(0), usesRequest: true)
    case "key":
      return TypedScalar(expression: .elementKey(0), usesRequest: true)
    default:
      throw .error(
        .unknownRef, "json_each has no column \(name)", remedy: "write value or key", at: span)
    }
  }

  private func requestMember(
    _ qualifier: String, _ name: String, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    try requireRequest(at: span)
    guard qualifier == "token_parameters" else {
      return TypedScalar(
        expression: .userParameter(name), usesRequest: true, isClientChosen: true)
    }
    let value: PlanExpression = name == "user_id" ? .userID : .tokenParameter(name)
    return TypedScalar(expression: value, usesRequest: true, isAuthenticated: true)
  }

  private func requireRequest(at span: SourceSpan) throws(Diagnostic) {
    guard case .data = scope.dialect else { return }
    throw .error(
      .requestInData, "request values are not available in data queries",
      remedy: "select the value in a parameter query and compare with bucket.<name>", at: span)
  }

  // MARK: Calls

  private mutating func call(_ call: FunctionCall) throws(Diagnostic) -> TypedScalar {
    if let qualifier = call.qualifier {
      guard qualifier.name == "request" else {
        throw .error(
          .unknownFunction, "there is no function \(call.displayName)", at: call.span)
      }
      return try requestCall(call)
    }
    var arguments: [TypedScalar] = []
    for argument in call.arguments { arguments.append(try scalar(argument)) }
    for index in arguments.indices.dropFirst() {
      for earlier in arguments[..<index] {
        try requireUnmixed(
          earlier, arguments[index], "\(call.displayName)()", at: call.span)
      }
    }
    let expression = try FunctionTyper(call: call, arguments: arguments.map(\.expression)).typed(
      options: scope.options)
    return arguments.reduce(TypedScalar(expression: .null)) { combined($0, $1) }
      .with(expression)
  }

  private mutating func requestCall(_ call: FunctionCall) throws(Diagnostic) -> TypedScalar {
    try requireRequest(at: call.span)
    switch call.name.name.lowercased() {
    case "user_id":
      return TypedScalar(expression: .userID, usesRequest: true, isAuthenticated: true)
    case "jwt":
      return TypedScalar(expression: .claims, usesRequest: true, isAuthenticated: true)
    case "parameters":
      return TypedScalar(expression: .parameters, usesRequest: true, isClientChosen: true)
    case "parameter":
      guard case .string(let name)? = call.arguments.first?.kind else {
        throw .error(
          .dynamicArgument, "request.parameter() needs the parameter's name as a text",
          at: call.span)
      }
      return TypedScalar(
        expression: .userParameter(name), usesRequest: true, isClientChosen: true)
    default:
      throw .error(
        .unknownFunction, "there is no function \(call.displayName)",
        remedy: "there are request.user_id(), request.jwt() and request.parameters()",
        at: call.span)
    }
  }

  // MARK: Operators

  private mutating func binary(
    _ operation: BinaryOperator, _ left: Expression, _ right: Expression, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    let left = try scalar(left)
    let right = try scalar(right)
    if let comparison = operation.comparison {
      return try compare(comparison, left, right, at: span)
    }
    try requireUnmixed(left, right, operation.rawValue, at: span)
    let both = combined(left, right)
    if let arithmetic = operation.arithmetic {
      return both.with(.arithmetic(arithmetic, left.expression, right.expression))
    }
    guard operation == .concatenate else {
      throw .error(
        .unsupportedOperator, "the operator \(operation.rawValue) is not supported", at: span)
    }
    return both.with(.concatenate(left.expression, right.expression))
  }

  private func path(_ key: String) -> [String] {
    if key.hasPrefix("$") { return JSONPath.components(key) }
    return scope.options.fixedJSONExtract ? [key] : JSONPath.split(key)
  }

  private func member(
    _ operand: TypedScalar, path: [String], asValue: Bool, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    if operand.expression.valueClass == .blob {
      throw .error(.blobMixed, "a binary value is not read as JSON", at: span)
    }
    return operand.with(
      .member(
        operand.expression, path: path, asValue: asValue,
        legacyNull: !scope.options.fixedJSONExtract))
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
