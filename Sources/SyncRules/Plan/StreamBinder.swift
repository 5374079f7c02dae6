/// Resolves the names of one query of a stream, and takes its subqueries apart until tables,
/// `json_each` and conditions are left.
///
/// A query over wildcard tables is bound once for each choice of tables.
struct StreamBinder {
  let edition: Int
  let options: RuleOptions
  /// The queries of `with` that the stream sees.
  let namedQueries: [NamedQuery]
  /// Which of its candidates each table stands for in this pass; the first, where nothing is said.
  let choices: [Int]
  var context: PlanCompiler
  /// The names in scope, those of the outermost query first.
  var frames: [[StreamName]] = []
  private(set) var tables: [StreamTable] = []
  private(set) var elements: [StreamElements] = []
  private(set) var usedQueries: Set<String> = []
  /// Whether what is bound is a query of `with`, which sees no other.
  private var isInNamedQuery = false
  /// Whether the parameters of a subscription are read.
  var usesSubscription = false

  init(
    edition: Int, namedQueries: [NamedQuery], choices: [Int], context: PlanCompiler
  ) {
    self.edition = edition
    options = context.rules.options
    self.namedQueries = namedQueries
    self.choices = choices
    self.context = context
  }

  /// Binds a query of the stream.
  mutating func bind(_ select: SelectStatement) throws(Diagnostic) -> BoundQuery {
    let condition = try sources(of: select, outer: [])
    let (primary, columns) = try outputs(of: select)
    return BoundQuery(
      tables: tables, elements: elements, condition: condition, primary: primary, columns: columns)
  }

  /// Binds a query of `with` to find what is wrong with it, whether or not it is used.
  mutating func check(_ query: NamedQuery) throws(Diagnostic) {
    if query.query.select != nil { _ = try subquery(query) }
  }

  // MARK: FROM and WHERE

  /// The conditions of a query; the names of its sources stay in scope.
  private mutating func sources(
    of select: SelectStatement, outer: [[StreamName]]
  ) throws(Diagnostic) -> StreamCondition {
    frames = outer + [[]]
    var conditions: [StreamCondition] = []
    for item in select.from { conditions.append(try source(item, outer: outer)) }
    for item in select.from {
      if let condition = item.join?.condition {
        conditions.append(try self.condition(condition))
      }
    }
    if let condition = select.condition {
      conditions.append(try self.condition(condition))
    }
    return .all(conditions)
  }

  private mutating func source(
    _ item: FromItem, outer: [[StreamName]]
  ) throws(Diagnostic) -> StreamCondition {
    switch item.source {
    case .table(let name):
      try refuseColumnAliases(item)
      if name.schema == nil, let query = namedQuery(name.name) {
        return try inlined(
          try subquery(query), as: item.alias?.name ?? query.name, item)
      }
      let number = tables.count
      var candidates = context.tables(named: name)
      if candidates.isEmpty {
        candidates = [ResolvedTable(name: name.name.name, table: nil, suffix: nil)]
      }
      let choice = number < choices.count ? choices[number] : 0
      tables.append(
        StreamTable(
          name: name, alias: item.alias, resolved: candidates[choice],
          candidates: candidates.count))
      try declare(item.alias?.name ?? name.name.name, .table(number), at: item.span)
      return .term(.table(number))
    case .function(let call):
      try refuseColumnAliases(item)
      guard call.qualifier == nil, call.name.name == "json_each" else {
        throw .error(
          .unknownTVF, "only json_each() can stand in FROM", at: call.span)
      }
      guard call.arguments.count == 1 else {
        throw .error(.arity, "json_each() takes one argument, a JSON array", at: call.span)
      }
      let value = try scalar(call.arguments[0])
      let number = try addElements(of: value, at: call.span)
      try declare(item.alias?.name ?? "json_each", .elements(number), at: item.span)
      return .term(.elements(number))
    case .subquery(let select):
      guard let alias = item.alias else {
        throw .error(
          .sqlSyntax, "a subquery in FROM needs a name", remedy: "write (SELECT …) AS name",
          at: item.span)
      }
      return try inlined(try subquery(select, outer: outer), as: alias.name, item)
    }
  }

  private func refuseColumnAliases(_ item: FromItem) throws(Diagnostic) {
    guard let first = item.columnAliases.first else { return }
    throw .error(
      .subqueryColumns, "only a subquery in FROM can name its columns",
      remedy: "write (SELECT …) AS name (\(first.written), …)", at: first.span)
  }

  private mutating func inlined(
    _ bound: (columns: [StreamColumn], condition: StreamCondition), as name: String,
    _ item: FromItem
  ) throws(Diagnostic) -> StreamCondition {
    var columns = bound.columns
    if let first = item.columnAliases.first {
      guard item.columnAliases.count == columns.count else {
        throw .error(
          .subqueryColumns,
          "the subquery has \(columns.count) columns, but \(item.columnAliases.count) names",
          at: first.span)
      }
      for (index, alias) in item.columnAliases.enumerated() { columns[index].name = alias.name }
    }
    try requireDistinct(columns, at: item.span)
    try declare(name, .columns(columns), at: item.span)
    return bound.condition
  }

  private func requireDistinct(
    _ columns: [StreamColumn], at span: SourceSpan
  ) throws(Diagnostic) {
    for (index, column) in columns.enumerated()
    where columns[..<index].contains(where: { $0.name == column.name }) {
      throw .error(
        .subqueryColumns, "the subquery has two columns with the name \(column.name)",
        remedy: "give one of them another name with AS", at: span)
    }
  }

  private mutating func declare(
    _ name: String, _ meaning: StreamName.Meaning, at span: SourceSpan
  ) throws(Diagnostic) {
    let inner = frames.count - 1
    guard !frames[inner].contains(where: { $0.name == name }) else {
      throw .error(
        .duplicateAlias, "there are two sources with the name \(name)",
        remedy: "give one of them another name with AS", at: span)
    }
    frames[inner].append(StreamName(name: name, meaning: meaning))
  }

  /// Joins the elements of a value; the number under which they are known.
  mutating func addElements(
    of value: TypedScalar, at span: SourceSpan
  ) throws(Diagnostic) -> Int {
    guard value.elements.isEmpty else {
      throw .error(
        .elementsInput, "the elements of an element cannot be read",
        remedy: "keep the inner array in a column of its own", at: span)
    }
    guard value.expression.valueClass != .blob else {
      throw .error(.blobMixed, "a binary value is not read as JSON", at: span)
    }
    elements.append(StreamElements(value: value))
    return elements.count - 1
  }

  // MARK: Subqueries

  /// The query of `with` that a name without qualifier stands for.
  mutating func namedQuery(_ name: Identifier) -> NamedQuery? {
    guard !isInNamedQuery, let query = namedQueries.first(where: { $0.name == name.name })
    else { return nil }
    usedQueries.insert(query.name)
    return query
  }

  /// A query of `with` sees neither the query that uses it nor other queries of `with`.
  private mutating func subquery(
    _ query: NamedQuery
  ) throws(Diagnostic) -> (columns: [StreamColumn], condition: StreamCondition) {
    guard let select = query.query.select else { throw .unusable(query) }
    isInNamedQuery = true
    defer { isInNamedQuery = false }
    return try subquery(select, outer: [])
  }

  /// The columns of a subquery and what it joins and demands.
  private mutating func subquery(
    _ select: SelectStatement, outer: [[StreamName]]
  ) throws(Diagnostic) -> (columns: [StreamColumn], condition: StreamCondition) {
    let saved = frames
    defer { frames = saved }
    let condition = try sources(of: select, outer: outer)
    var columns: [StreamColumn] = []
    for item in select.columns {
      guard case .expression(let expression) = item.value else {
        throw .error(
          .subqueryColumns, "a subquery cannot select *", remedy: "name its columns", at: item.span)
      }
      columns.append(
        StreamColumn(
          name: item.outputName?.name ?? item.sourceText, value: try scalar(expression)))
    }
    return (columns, condition)
  }

  /// The one column of a subquery after IN or beside `&&`; it may use the names of the query around it.
  mutating func column(
    of select: SelectStatement
  ) throws(Diagnostic) -> (value: TypedScalar, condition: StreamCondition) {
    try requireAlphaShape(select)
    let (columns, condition) = try subquery(select, outer: frames)
    return (try single(columns, at: select.span), condition)
  }

  /// The one column of a query of `with`.
  mutating func column(
    of query: NamedQuery, at span: SourceSpan
  ) throws(Diagnostic) -> (value: TypedScalar, condition: StreamCondition) {
    let (columns, condition) = try subquery(query)
    return (try single(columns, at: span), condition)
  }

  private func single(
    _ columns: [StreamColumn], at span: SourceSpan
  ) throws(Diagnostic) -> TypedScalar {
    guard columns.count == 1 else {
      throw .error(
        .subqueryColumns, "a query after IN selects one column, not \(columns.count)",
        remedy: "select the one to compare with", at: span)
    }
    return columns[0].value
  }

  // MARK: Edition 2

  private static let newer = "set 'edition: 3', which allows it"

  private func requireAlphaShape(_ select: SelectStatement) throws(Diagnostic) {
    guard edition < 3 else { return }
    if frames.count > 1 {
      throw .error(
        .alphaStream, "edition 2 has no subqueries in subqueries", remedy: Self.newer,
        at: select.span)
    }
    if let condition = select.condition, condition.hasAlternatives {
      throw .error(
        .alphaStream, "edition 2 has no OR in subqueries", remedy: Self.newer, at: condition.span)
    }
  }

  /// What a subquery finds, or what it is compared with, must depend on the request.
  func requireAlphaRequest(
    _ operand: TypedScalar?, _ condition: StreamCondition, at span: SourceSpan
  ) throws(Diagnostic) {
    guard edition < 3, operand?.usesRequest != true, !condition.usesRequest else { return }
    throw .error(
      .alphaStream, "the subquery does not depend on the request",
      remedy: "compare one of its columns with auth.user_id(), or set 'edition: 3'", at: span)
  }
}

extension StreamBinder {
  mutating func warn(_ diagnostic: Diagnostic) {
    context.report(diagnostic)
  }
}

extension Diagnostic {
  /// What is wrong with the query was said where it stands.
  fileprivate static func unusable(_ query: NamedQuery) -> Diagnostic {
    .error(
      .sqlSyntax, "the query '\(query.name)' has errors", at: query.nameSpan)
  }
}

extension Expression {
  fileprivate var hasAlternatives: Bool {
    if case .binary(.or, _, _) = kind { return true }
    return children.contains(where: \.hasAlternatives)
  }
}

extension StreamCondition {
  fileprivate var usesRequest: Bool {
    switch self {
    case .term(.scalar(let scalar)): scalar.usesRequest
    case .term(.link(let left, let right)): left.usesRequest || right.usesRequest
    case .term: false
    case .all(let conditions), .any(let conditions): conditions.contains(where: \.usesRequest)
    }
  }
}
