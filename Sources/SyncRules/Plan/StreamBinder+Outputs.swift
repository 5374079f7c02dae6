/// The SELECT list of a stream's query.
extension StreamBinder {
  /// The table whose rows the query selects, and its columns on clients.
  mutating func outputs(
    of select: SelectStatement
  ) throws(Diagnostic) -> (primary: Int, columns: [PlanQuery.Column]) {
    var outputs = StreamOutputs()
    for item in select.columns {
      switch item.value {
      case .star:
        guard let name = frames.last?.first, frames.last?.count == 1 else {
          throw .error(
            .oneOutputTable, "* would select the columns of several sources",
            remedy: "write * for one of them: "
              + (frames.last ?? []).map { "\($0.name).*" }.joined(separator: " or "),
            at: item.span)
        }
        try star(name.meaning, &outputs, at: item.span)
      case .qualifiedStar(let qualifier):
        try star(try meaning(of: qualifier), &outputs, at: item.span)
      case .expression(let expression):
        let value = try scalar(expression)
        try outputs.use(value, at: item.span)
        if item.outputName == nil {
          warn(
            .warning(
              .warnAlias, "the column has no name of its own, and gets '\(item.sourceText)'",
              remedy: "write AS and a name", at: item.span))
        }
        outputs.hasAlias = outputs.hasAlias || item.alias != nil
        outputs.set(item.outputName?.name ?? item.sourceText, value)
      }
    }
    guard let primary = outputs.table else {
      throw .error(
        .oneOutputTable, "the query selects no column of a table",
        remedy: "select the columns that clients are to have", at: select.span)
    }
    if !outputs.namesID {
      warn(
        .warning(
          .missingID, "the query does not select id, so all its rows are one row to clients",
          remedy: "select the key AS id", at: select.span))
    }
    if select.from.count > 1, let alias = tables[primary].alias, !alias.isQuoted {
      warn(
        .warning(
          .warnJoinAlias, "clients see the rows in a table named \(alias.name)",
          remedy: "write AS \"\(alias.name)\" if they should, or no alias", at: alias.span))
    }
    return (primary, outputs.columns)
  }

  private mutating func star(
    _ meaning: StreamName.Meaning, _ outputs: inout StreamOutputs, at span: SourceSpan
  ) throws(Diagnostic) {
    if outputs.hasAlias {
      warn(
        .warning(
          .warnStarOrder, "* replaces the columns of the same name that stand before it",
          remedy: "write * first", at: span))
    }
    switch meaning {
    case .elements:
      throw StreamOutputs.elementsSelected(at: span)
    case .columns(let columns):
      for column in columns {
        try outputs.use(column.value, at: span)
        outputs.set(column.name, column.value)
      }
    case .table(let number):
      try outputs.use(
        TypedScalar(expression: .null, homes: [.source(number)]), at: span)
      guard let table = tables[number].resolved.table else {
        outputs.namesID = true
        return
      }
      for column in table.columns {
        // Edition 2 hides underscores, and lets what was named before stand.
        let isHidden = column.name.hasPrefix("_") || outputs.has(column.name)
        if edition < 3, isHidden { continue }
        let conversion = ValueConversion(column.type, options: options)
        outputs.set(
          column.name, TypedScalar(expression: .column(name: column.name, conversion)))
      }
    }
  }
}

/// The columns found so far.
struct StreamOutputs {
  private(set) var table: Int?
  private(set) var columns: [PlanQuery.Column] = []
  /// Whether a column with AS stands in the list.
  var hasAlias = false
  var namesID = false

  static func elementsSelected(at span: SourceSpan) -> Diagnostic {
    .error(
      .oneOutputTable, "the elements of json_each are no rows that clients could have",
      remedy: "select columns of the table", at: span)
  }

  func has(_ name: String) -> Bool { columns.contains { $0.name == name } }

  /// Takes note of what a column depends on: one table and nothing else.
  mutating func use(_ value: TypedScalar, at span: SourceSpan) throws(Diagnostic) {
    guard value.elements.isEmpty else { throw Self.elementsSelected(at: span) }
    guard !value.usesRequest else {
      throw .error(
        .requestInData, "a value of the request cannot be selected",
        remedy: "clients that share a row share its columns; compare with the value in WHERE",
        at: span)
    }
    guard case .source(let number)? = value.homes.first else { return }
    guard table == nil || table == number else {
      throw .error(
        .oneOutputTable, "the columns of a query come from one table, and this one is of another",
        remedy: "write a second query for the other table's rows", at: span)
    }
    table = number
  }

  /// Adds a column, or replaces the one of its name.
  mutating func set(_ name: String, _ value: TypedScalar) {
    if name == "id" { namesID = true }
    if value.isMissingColumn {
      columns.removeAll { $0.name == name }
    } else if let index = columns.firstIndex(where: { $0.name == name }) {
      columns[index].value = value.expression
    } else {
      columns.append(.init(name: name, value: value.expression))
    }
  }
}
