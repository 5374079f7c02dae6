extension ClauseTyper: ScalarTyper {
  var options: RuleOptions { scope.options }
  var isUnequalToNull: Bool { false }

  mutating func column(
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
      return rowColumn(name, of: scope.table, suffix: scope.suffix, source: 0, at: span)
    case let qualifier?:
      throw .error(
        .unknownRef, "\(qualifier) is not the table of this query",
        remedy: scope.qualifier.map { "write \($0).\(name)" }, at: span)
    case nil:
      throw .error(
        .unknownRef, "\(name) is a column, but the query reads no table", at: span)
    }
  }

  private func element(_ name: String, at span: SourceSpan) throws(Diagnostic) -> TypedScalar {
    switch name {
    case "value":
      return TypedScalar(expression: .elementValue(0), homes: [.request])
    case "key":
      return TypedScalar(expression: .elementKey(0), homes: [.request])
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
      return .clientChosen(.userParameter(name))
    }
    return .authenticated(name == "user_id" ? .userID : .tokenParameter(name))
  }

  private func requireRequest(at span: SourceSpan) throws(Diagnostic) {
    guard case .data = scope.dialect else { return }
    throw .error(
      .requestInData, "request values are not available in data queries",
      remedy: "select the value in a parameter query and compare with bucket.<name>", at: span)
  }

  mutating func qualifiedCall(_ call: FunctionCall) throws(Diagnostic) -> TypedScalar {
    guard call.qualifier?.name == "request" else {
      throw .error(
        .unknownFunction, "there is no function \(call.displayName)", at: call.span)
    }
    try requireRequest(at: call.span)
    switch call.name.name.lowercased() {
    case "user_id": return .authenticated(.userID)
    case "jwt": return .authenticated(.claims)
    case "parameters": return .clientChosen(.parameters)
    case "parameter": return .clientChosen(.userParameter(try parameterName(of: call)))
    default:
      throw .error(
        .unknownFunction, "there is no function \(call.displayName)",
        remedy: "there are request.user_id(), request.jwt() and request.parameters()",
        at: call.span)
    }
  }

  func mixed(
    _ left: TypedScalar, _ right: TypedScalar, _ symbol: String, at span: SourceSpan
  ) -> Diagnostic {
    .error(
      .mixedClause, "\(symbol) cannot combine a value of the row with one of the request",
      remedy: "compare the two with =, or use IN on a JSON array", at: span)
  }
}
