/// What names stand for in streams.
extension StreamBinder: ScalarTyper {
  var isUnequalToNull: Bool { edition > 2 }

  mutating func scalar(_ expression: Expression) throws(Diagnostic) -> TypedScalar {
    switch expression.kind {
    case .subquery(let select), .membership(_, .subquery(let select), negated: _):
      throw .error(
        .subqueryPosition, "a subquery cannot be a part of a value",
        remedy: "let value IN (SELECT …) be a term of WHERE, joined by AND or OR",
        at: select.span)
    case .binary(.overlap, _, _):
      throw .error(
        .unsupportedOperator, "&& cannot be a part of a value",
        remedy: "let it be a term of WHERE, joined by AND or OR", at: expression.span)
    default: return try scalarForm(expression)
    }
  }

  // MARK: Columns

  mutating func column(
    _ column: ColumnReference, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    let name = column.name.name
    switch try meaning(of: column, at: span) {
    case .table(let number):
      let resolved = tables[number].resolved
      return rowColumn(
        name, of: resolved.table, suffix: resolved.suffix, source: number, at: span)
    case .elements(let number):
      switch name {
      case "value": return element(number)
      case "key": return element(number).with(.elementKey(number))
      default:
        throw .error(
          .unknownRef, "json_each has no column \(name)", remedy: "write value or key", at: span)
      }
    case .columns(let columns):
      guard let column = columns.first(where: { $0.name == name }) else {
        throw .error(
          .subqueryColumns, "the subquery does not select \(name)",
          remedy: Suggestion.nearest(to: name, among: columns.map(\.name)).map {
            "did you mean \($0)?"
          } ?? "add it to the subquery's columns", at: span)
      }
      return column.value
    }
  }

  private func meaning(
    of column: ColumnReference, at span: SourceSpan
  ) throws(Diagnostic) -> StreamName.Meaning {
    if let qualifier = column.qualifier { return try meaning(of: qualifier) }
    guard let names = frames.last(where: { !$0.isEmpty }) else {
      throw .error(
        .unknownRef, "\(column.name.written) is a column, but the query reads no table", at: span)
    }
    guard names.count == 1 else {
      throw .error(
        .ambiguousColumn, "\(column.name.written) could be of any of several sources",
        remedy: "write the source in front: "
          + names.map { "\($0.name).\(column.name.written)" }.joined(separator: " or "),
        at: span)
    }
    return names[0].meaning
  }

  /// What a name in front of a column, of `*` or of a metadata function stands for.
  func meaning(of qualifier: Identifier) throws(Diagnostic) -> StreamName.Meaning {
    for names in frames.reversed() {
      if let name = names.first(where: { $0.name == qualifier.name }) { return name.meaning }
    }
    let known = frames.flatMap { $0.map(\.name) }
    let isRequest = ["request", "token_parameters", "user_parameters", "bucket"]
      .contains(qualifier.name)
    throw .error(
      .unknownTable, "\(qualifier.written) is not a source of this query",
      remedy: isRequest
        ? "streams use auth.parameter('…'), connection.parameter('…') and subscription.parameter('…')"
        : Suggestion.nearest(to: qualifier.name, among: known).map { "did you mean \($0)?" }
          ?? "name it in FROM",
      at: qualifier.span)
  }

  // MARK: Calls

  mutating func qualifiedCall(_ call: FunctionCall) throws(Diagnostic) -> TypedScalar {
    guard let qualifier = call.qualifier else { return TypedScalar(expression: .null) }
    let function = call.name.name
    switch qualifier.name {
    case "auth" where function == "user_id":
      return .authenticated(.userID)
    case "auth":
      return .authenticated(try requestValue(.claims, call))
    case "connection":
      return .clientChosen(try requestValue(.parameters, call))
    case "subscription":
      usesSubscription = true
      return .clientChosen(try requestValue(.subscription, call))
    default:
      return try metadata(function, of: qualifier, at: call.span)
    }
  }

  /// `….parameters()`, or one member of it: `….parameter('k')`.
  private func requestValue(
    _ source: PlanExpression, _ call: FunctionCall
  ) throws(Diagnostic) -> PlanExpression {
    guard call.name.name == "parameter" else { return source }
    let key = try parameterName(of: call)
    let path = key.hasPrefix("$") ? JSONPath.components(key) : [key]
    return .member(source, path: path, asValue: true, legacyNull: false)
  }

  /// `t.schema()`, `t.table_name()`, `t.table_suffix()`
  private mutating func metadata(
    _ function: String, of qualifier: Identifier, at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    guard case .table(let number) = try meaning(of: qualifier) else {
      throw .error(
        .metadata, "\(function)() tells about tables, and \(qualifier.written) is none", at: span)
    }
    let resolved = tables[number].resolved
    let value: String
    switch function {
    case "schema": value = resolved.table?.schema ?? ""
    case "table_name": value = resolved.name
    default:
      value = resolved.suffix ?? ""
      if !tables[number].name.isWildcard {
        warn(
          .warning(
            .warnSuffix, "\(qualifier.written) is not a wildcard, so its suffix is empty",
            remedy: "name the tables as \"prefix_%\"", at: span))
      }
    }
    return TypedScalar(expression: .text(value), homes: [.source(number)])
  }

  // MARK: Mixing

  func mixed(
    _ left: TypedScalar, _ right: TypedScalar, _ symbol: String, at span: SourceSpan
  ) -> Diagnostic {
    let usesRequest = left.usesRequest || right.usesRequest
    return .error(
      .crossTable,
      usesRequest
        ? "\(symbol) cannot combine a value of the row with one of the request"
        : "\(symbol) cannot combine values of two tables",
      remedy: usesRequest
        ? "compare the two with =, or use IN; keep what depends on the row in a column"
        : "compare the two with =, or use IN (SELECT …)",
      at: span)
  }
}
