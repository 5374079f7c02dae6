/// Compiles one bucket definition.
struct DefinitionCompiler {
  let definition: BucketDefinition
  var context: PlanCompiler

  private var lookups: [PlanLookup] = []
  private var grants: [PlanGrant] = []
  private var queries: [PlanQuery] = []

  init(definition: BucketDefinition, context: PlanCompiler) {
    self.definition = definition
    self.context = context
  }

  /// The definition's plan, as far as its queries have no errors.
  mutating func compile() -> PlanDefinition? {
    let parameters = compileParameters()
    for query in definition.data {
      guard let select = query.select else { continue }
      report { compiler throws(Diagnostic) in
        try compiler.compileData(select, parameters: parameters)
      }
    }
    guard let parameters else { return nil }
    return PlanDefinition(
      name: definition.name,
      priority: definition.priority?.value ?? BucketDefinition.defaultPriority,
      parameters: parameters, queries: queries, lookups: lookups, grants: grants)
  }

  private mutating func report(
    _ body: (inout DefinitionCompiler) throws(Diagnostic) -> Void
  ) {
    do {
      try body(&self)
    } catch {
      context.report(error)
    }
  }

  // MARK: Parameter queries

  /// The bucket parameters in order; nil when a parameter query has errors.
  private mutating func compileParameters() -> [String]? {
    guard let parameterQueries = definition.parameters, !parameterQueries.isEmpty else {
      grants.append(PlanGrant(priority: priority, conditions: [], outputs: []))
      return []
    }
    var names: [String]?
    var isComplete = true
    for query in parameterQueries {
      guard let select = query.select else {
        isComplete = false
        continue
      }
      do {
        let compiled = try ParameterQueryCompiler(definition: definition).compile(
          select, context: &context, expecting: names)
        names = names ?? compiled.names
        for var variant in compiled.variants {
          if let lookup = variant.lookup {
            variant.grant.steps.append(.lookup(lookups.count, key: variant.key))
            lookups.append(lookup)
          }
          grants.append(variant.grant)
        }
      } catch {
        context.report(error)
        isComplete = false
      }
    }
    return isComplete ? names : nil
  }

  private var priority: Int {
    definition.priority?.value ?? BucketDefinition.defaultPriority
  }

  // MARK: Data queries

  private mutating func compileData(
    _ select: SelectStatement, parameters: [String]?
  ) throws(Diagnostic) {
    guard select.from.count == 1, let item = select.from.first else {
      throw .error(
        .singleTable, "a data query reads exactly one table",
        remedy: "write a query for each table", at: select.span)
    }
    guard case .table(let name) = item.source, item.columnAliases.isEmpty else {
      throw .error(.singleTable, "a data query reads a table", at: item.span)
    }
    for resolved in context.tables(named: name) {
      let scope = QueryScope(
        dialect: .data(parameters: parameters), options: context.rules.options,
        qualifier: item.alias?.name ?? name.name.name, table: resolved.table,
        suffix: resolved.suffix)
      var typer = ClauseTyper(scope: scope)
      let columns = try outputs(of: select, typer: &typer, tableName: name.name.name)
      let branches = try branches(of: select, typer: &typer, parameters: parameters)
      context.report(typer.warnings)
      guard let table = resolved.table else { continue }
      let source = try context.source(of: table, at: name.span)
      queries.append(
        PlanQuery(
          source: source, outputName: item.alias?.name ?? resolved.name, columns: columns,
          branches: branches))
    }
  }

  private mutating func outputs(
    of select: SelectStatement, typer: inout ClauseTyper, tableName: String
  ) throws(Diagnostic) -> [PlanQuery.Column] {
    var columns: [PlanQuery.Column] = []
    var namesID = false
    for item in select.columns {
      switch item.value {
      case .qualifiedStar(let qualifier)
      where qualifier.name != typer.scope.qualifier && qualifier.name != tableName:
        throw .error(
          .unknownRef, "\(qualifier.name) is not the table of this query", at: item.span)
      case .star, .qualifiedStar:
        namesID = true
        for column in typer.scope.table?.columns ?? []
        where !column.name.hasPrefix("_") && !columns.contains(where: { $0.name == column.name }) {
          let conversion = ValueConversion(column.type, options: typer.scope.options)
          columns.append(.init(name: column.name, value: .column(name: column.name, conversion)))
        }
        if let table = typer.scope.table, table.column("id") == nil {
          typer.warn(
            .warning(
              .missingID, "\(table.schema).\(table.name) has no column id",
              remedy: "select its key AS id", at: item.span))
        }
      case .expression(let expression):
        guard let name = item.outputName?.name else {
          throw .error(
            .aliasRequired, "an expression needs a name", remedy: "write AS and a name",
            at: item.span)
        }
        let scalar = try typer.scalar(expression)
        if name == "id" { namesID = true }
        if scalar.isMissingColumn {
          columns.removeAll { $0.name == name }
        } else if let index = columns.firstIndex(where: { $0.name == name }) {
          columns[index].value = scalar.expression
        } else {
          columns.append(.init(name: name, value: scalar.expression))
        }
      }
    }
    guard namesID else {
      throw .error(
        .missingID, "a data query must select id", remedy: "select the key AS id",
        at: select.span)
    }
    return columns
  }

  private func branches(
    of select: SelectStatement, typer: inout ClauseTyper, parameters: [String]?
  ) throws(Diagnostic) -> [PlanBranch] {
    var found = [MatchBranch()]
    if let condition = select.condition {
      found = ClauseTyper.branches(try typer.clause(condition))
    }
    guard let parameters else { return [] }
    var result: [PlanBranch] = []
    for branch in found {
      var places: [[MatchBranch.Part]] = []
      for parameter in parameters {
        let matching = branch.parts.filter { $0.slot == .bucketParameter(parameter) }
        guard !matching.isEmpty else {
          throw .error(
            .paramCoverage, "the query does not match bucket.\(parameter)",
            remedy: "every data query must use every parameter of its definition",
            at: select.condition?.span ?? select.span)
        }
        places.append(matching)
      }
      result.append(branch.planned(places: places, conditions: branch.filters))
    }
    return result
  }
}
