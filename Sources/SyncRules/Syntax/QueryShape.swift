/// Checks what needs no types: that a query has only what its dialect knows.
///
/// One instance checks one query; findings are collected in the order of the text.
struct QueryShape {
  let dialect: QueryDialect
  private(set) var diagnostics: [Diagnostic] = []
  private var warnedNames: Set<String> = []

  init(_ dialect: QueryDialect) {
    self.dialect = dialect
  }

  static func check(_ select: SelectStatement, _ dialect: QueryDialect) -> [Diagnostic] {
    var shape = QueryShape(dialect)
    shape.check(select, isSubquery: false)
    return shape.diagnostics
  }

  mutating func refuse(
    _ code: DiagnosticCode, _ message: String, remedy: String? = nil, at span: SourceSpan
  ) {
    diagnostics.append(.error(code, message, remedy: remedy, at: span))
  }

  mutating func check(_ select: SelectStatement, isSubquery: Bool) {
    if let distinct = select.distinct, !dialect.isStream {
      refuse(
        .clause, "DISTINCT is not available", remedy: "remove it: a row is in a bucket once",
        at: distinct)
    }
    for column in select.columns { check(column, isSubquery: isSubquery) }
    checkSources(select, isSubquery: isSubquery)
    if let condition = select.condition { check(condition, position: .condition) }
    if !dialect.isStream { checkQualifiers(select) }
  }

  private mutating func check(_ column: ResultColumn, isSubquery: Bool) {
    switch column.value {
    case .expression(let expression): check(expression, position: .value)
    case .star, .qualifiedStar:
      if isSubquery {
        refuse(
          .star, "a subquery cannot select '*'", remedy: "name the columns it selects",
          at: column.span)
      } else if dialect == .bucketParameters {
        refuse(
          .star, "a parameter query cannot select '*'",
          remedy: "name the columns that are parameters of the bucket", at: column.span)
      }
    }
    if let alias = column.alias { checkCase(alias) }
  }

  /// Warns once for each name that loses its capitals.
  mutating func checkCase(_ name: Identifier) {
    guard name.isFolded, !dialect.isStream, warnedNames.insert(name.written).inserted else {
      return
    }
    diagnostics.append(
      .warning(
        .warnCase, "'\(name.written)' is read as '\(name.name)', since it has no quotes",
        remedy: "write \"\(name.written)\" to keep the capitals, or \(name.name)", at: name.span))
  }

  // MARK: FROM

  private mutating func checkSources(_ select: SelectStatement, isSubquery: Bool) {
    for item in select.from { checkSource(item) }
    guard !dialect.isStream else { return }
    if select.from.count > 1 {
      refuse(
        .singleTable, "a query here reads one table; this is the second",
        remedy: dialect == .alphaStream
          ? "use IN (SELECT …), or edition 3 for joins"
          : "put the condition on the other table into a parameter query", at: select.from[1].span)
    }
    guard let first = select.from.first else {
      if dialect != .bucketParameters {
        refuse(.singleTable, "a query here needs a table: FROM is missing", at: select.span)
      }
      return
    }
    if case .function(let call) = first.source, dialect != .bucketParameters {
      refuse(.singleTable, "a query here reads a table, not a function", at: call.span)
    }
  }

  private mutating func checkSource(_ item: FromItem) {
    switch item.source {
    case .table(let table):
      for name in [table.schema, table.name].compactMap({ $0 }) { checkCase(name) }
      checkSchema(table)
    case .function(let call):
      for argument in call.arguments { check(argument, position: .value) }
    case .subquery(let select):
      if dialect.isStream {
        check(select, isSubquery: true)
      } else {
        refuse(
          .subqueryPosition, "there are no subqueries in FROM here",
          remedy: "name the table in FROM", at: select.span)
      }
    }
    if let alias = item.alias { checkCase(alias) }
    if let join = item.join { checkJoin(join) }
  }

  private mutating func checkSchema(_ table: TableName) {
    guard let schema = table.schema, schema.name.split(separator: ".").count > 2 else { return }
    refuse(
      .badSchema, "the schema \"\(schema.name)\" has more than one dot",
      remedy: "write \"connection.schema\".table", at: schema.span)
  }

  private mutating func checkJoin(_ join: FromItem.Join) {
    if dialect.isStream {
      if join.kind != .inner {
        refuse(
          .joinKind, "only inner joins are available, not \(join.kind.rawValue.uppercased()) JOIN",
          remedy: join.kind == .cross
            ? "write the tables with a comma between them"
            : "write JOIN … ON, or a second query of the stream for rows without a partner",
          at: join.keywords)
      } else if !join.using.isEmpty {
        refuse(
          .joinKind, "USING is not available", remedy: "write JOIN … ON a.column = b.column",
          at: join.keywords)
      }
    }
    if let condition = join.condition { check(condition, position: .condition) }
  }

  // MARK: Qualifiers

  /// Checks that qualifiers name the query's one table or request data.
  private mutating func checkQualifiers(_ select: SelectStatement) {
    guard select.from.count <= 1 else { return }
    var names: Set<String> = []
    var display: String?
    if let item = select.from.first {
      switch item.source {
      case .table(let table):
        display = item.alias?.name ?? table.name.name
      case .function(let call):
        display = item.alias?.name ?? call.name.name
        names.insert(call.name.name)
      case .subquery: return
      }
      if let display { names.insert(display) }
    }
    if dialect == .bucketData {
      names.formUnion(["bucket", "token_parameters", "user_parameters"])
    }
    if dialect == .bucketParameters { names.formUnion(["token_parameters", "user_parameters"]) }
    let expressions = select.columns.compactMap { column -> Expression? in
      guard case .expression(let expression) = column.value else { return nil }
      return expression
    }
    for expression in expressions + [select.condition].compactMap({ $0 }) {
      checkQualifiers(expression, names, table: display)
    }
    checkStars(select, names)
  }

  private mutating func checkQualifiers(
    _ expression: Expression, _ names: Set<String>, table: String?
  ) {
    if case .column(let column) = expression.kind, let qualifier = column.qualifier,
      !names.contains(qualifier.name)
    {
      refuse(
        .unknownRef, "'\(qualifier.written)' is not the table of this query",
        remedy: qualifier.name == "bucket"
          ? "bucket parameters are for data queries; use request.user_id() or another accessor"
          : table.map { "write \($0).\(column.name.written)" }, at: qualifier.span)
    }
    for child in expression.children { checkQualifiers(child, names, table: table) }
  }

  private mutating func checkStars(_ select: SelectStatement, _ names: Set<String>) {
    var names = names
    // With an alias, `old_name.*` is tolerated.
    if case .table(let table)? = select.from.first?.source { names.insert(table.name.name) }
    for column in select.columns {
      if case .qualifiedStar(let qualifier) = column.value, !names.contains(qualifier.name) {
        refuse(
          .unknownRef, "'\(qualifier.written)' is not the table of this query",
          remedy: "write * alone", at: qualifier.span)
      }
    }
  }
}
