/// Compiles one parameter query of a bucket definition.
struct ParameterQueryCompiler {
  /// What one table (of a wildcard: each) gives.
  struct Variant {
    /// Without the step over the lookup, whose place the definition gives.
    var grant: PlanGrant
    /// What the request looks up.
    var key: [PlanExpression] = []
    var lookup: PlanLookup?
  }

  struct Compiled {
    /// The parameters in the order of the query.
    var names: [String]
    var variants: [Variant]
  }

  let definition: BucketDefinition

  private struct Outputs {
    var values: [(name: String, scalar: TypedScalar)] = []
    var priority: Int
  }

  /// `expecting`: the parameters of the definition's first query, which fix names and order.
  func compile(
    _ select: SelectStatement, context: inout PlanCompiler, expecting: [String]?
  ) throws(Diagnostic) -> Compiled {
    guard select.from.count < 2 else {
      throw .error(
        .singleTable, "a parameter query reads one table at most",
        remedy: "write a query for each table", at: select.span)
    }
    var scope = QueryScope(dialect: .parameters, options: context.rules.options)
    guard let item = select.from.first else {
      return try requestOnly(select, scope, elements: nil, &context, expecting)
    }
    switch item.source {
    case .table(let name):
      if let alias = item.alias {
        throw .error(
          .paramTableAlias, "the table of a parameter query cannot have an alias",
          remedy: "name columns by the table", at: alias.span)
      }
      return try overTable(select, name, scope, &context, expecting)
    case .function(let call):
      guard call.qualifier == nil, call.name.name.lowercased() == "json_each" else {
        throw .error(
          .unknownTVF, "only json_each() can stand in FROM", at: call.span)
      }
      guard let argument = call.arguments.first else {
        throw .error(.arity, "json_each() needs a JSON array", at: call.span)
      }
      var typer = ClauseTyper(scope: scope)
      let elements = try typer.scalar(argument)
      scope.elementQualifiers = ["json_each"] + (item.alias.map { [$0.name] } ?? [])
      return try requestOnly(select, scope, elements: elements, &context, expecting)
    case .subquery:
      throw .error(.subqueryPosition, "FROM cannot hold a subquery here", at: item.span)
    }
  }

  // MARK: Shapes

  private func requestOnly(
    _ select: SelectStatement, _ scope: QueryScope, elements: TypedScalar?,
    _ context: inout PlanCompiler, _ expecting: [String]?
  ) throws(Diagnostic) -> Compiled {
    var typer = ClauseTyper(scope: scope)
    let outputs = try outputs(of: select, &typer)
    var conditions: [TypedScalar] = []
    if let condition = select.condition { conditions.append(try typer.scalar(condition)) }
    let names = try checkedNames(outputs, expecting, at: select.span)
    context.report(typer.warnings)
    let used = outputs.values.map(\.scalar) + (elements.map { [$0] } ?? [])
    warnIfDangerous(
      clientValues: used + conditions, authenticated: used.contains(where: \.isAuthenticated),
      &context, at: select.span)
    let grant = PlanGrant(
      priority: outputs.priority, conditions: conditions.map(\.expression),
      steps: elements.map { [.elements(PlanElements($0.expression))] } ?? [],
      outputs: try names.map { name throws(Diagnostic) in
        [try scalar(name, of: outputs).expression]
      })
    return Compiled(names: names, variants: [Variant(grant: grant)])
  }

  private func overTable(
    _ select: SelectStatement, _ name: TableName, _ scope: QueryScope,
    _ context: inout PlanCompiler, _ expecting: [String]?
  ) throws(Diagnostic) -> Compiled {
    var names = expecting
    var variants: [Variant] = []
    var tables = context.tables(named: name)
    let isMissing = tables.isEmpty
    // A table that does not exist still fixes the parameters' names.
    if isMissing { tables = [ResolvedTable(name: name.name.name, table: nil, suffix: nil)] }
    for resolved in tables {
      var scope = scope
      scope.qualifier = name.name.name
      scope.table = resolved.table
      scope.suffix = resolved.suffix
      var typer = ClauseTyper(scope: scope)
      let outputs = try outputs(of: select, &typer)
      var branches = [MatchBranch()]
      if let condition = select.condition {
        branches = ClauseTyper.branches(try typer.clause(condition))
      }
      let ordered = try checkedNames(outputs, names, at: select.span)
      names = ordered
      if !isMissing { context.report(typer.warnings) }
      let first = branches[0]
      warnIfDangerous(
        clientValues: outputs.values.map(\.scalar) + first.gates,
        clientSlots: first.parts.map(\.slot),
        authenticated: outputs.values.contains(where: { $0.scalar.isAuthenticated })
          || first.parts.contains(where: \.isAuthenticated),
        &context, at: select.span)
      guard let table = resolved.table else { continue }
      var variant = try variant(outputs, names: ordered, branches: branches)
      variant.lookup?.source = try context.source(of: table, at: name.span)
      variants.append(variant)
    }
    return Compiled(names: names ?? [], variants: variants)
  }

  private func variant(
    _ outputs: Outputs, names: [String], branches: [MatchBranch]
  ) throws(Diagnostic) -> Variant {
    let slots = branches[0].parts.map(\.slot)
    var values: [PlanExpression] = []
    var isJSON: [PlanExpression] = []
    var steps: [PlanGrant.Step] = []
    let key = slots.compactMap { slot -> PlanExpression? in
      guard case .request(let value, let expands) = slot else { return nil }
      guard expands else { return value }
      steps.append(.elements(PlanElements(value)))
      return .elementValue(steps.count - 1)
    }
    var grantOutputs: [[PlanExpression]] = []
    for name in names {
      let scalar = try scalar(name, of: outputs)
      guard scalar.usesRow else {
        grantOutputs.append([scalar.expression])
        continue
      }
      grantOutputs.append([.found(step: steps.count, value: values.count)])
      if scalar.expression.valueClass == .blob {
        // A binary value is no parameter; a missing one is NULL like any other.
        isJSON.append(.isNull(scalar.expression, negated: false))
        values.append(.null)
      } else {
        values.append(scalar.expression)
      }
    }
    let planned = branches.map { branch in
      var rest = branch.parts
      let places = slots.map { slot -> [MatchBranch.Part] in
        guard let index = rest.firstIndex(where: { $0.slot == slot }) else { return [] }
        return [rest.remove(at: index)]
      }
      return branch.planned(places: places, conditions: branch.filters + isJSON)
    }
    let grant = PlanGrant(
      priority: outputs.priority, conditions: branches[0].gates.map(\.expression),
      steps: steps, outputs: grantOutputs)
    return Variant(
      grant: grant, key: key, lookup: PlanLookup(source: 0, branches: planned, values: values))
  }

  // MARK: SELECT list

  private func outputs(
    of select: SelectStatement, _ typer: inout ClauseTyper
  ) throws(Diagnostic) -> Outputs {
    var outputs = Outputs(
      priority: definition.priority?.value ?? BucketDefinition.defaultPriority)
    var hasPriority = definition.priority != nil
    for item in select.columns {
      guard case .expression(let expression) = item.value else {
        throw .error(
          .star, "a parameter query cannot select *", remedy: "name its columns", at: item.span)
      }
      guard let name = item.outputName?.name else {
        throw .error(
          .aliasRequired, "an expression needs a name", remedy: "write AS and a name",
          at: item.span)
      }
      if name == "_priority" {
        guard case .integer(let digits) = expression.kind, let priority = Int(digits),
          (0...3).contains(priority), !hasPriority
        else {
          throw .error(
            .badPriority,
            hasPriority
              ? "the priority is set twice" : "_priority must be a number from 0 to 3",
            at: item.span)
        }
        outputs.priority = priority
        hasPriority = true
        continue
      }
      let scalar = try typer.scalar(expression)
      if scalar.usesRow && !scalar.isPlainColumn {
        throw .error(
          .paramRowExpr, "a bucket parameter from the row must be a column alone",
          remedy: "add a generated column for the expression", at: item.span)
      }
      if outputs.values.contains(where: { $0.name == name }) {
        throw .error(
          .paramCoverage, "the parameter \(name) is selected twice", at: item.span)
      }
      outputs.values.append((name, scalar))
    }
    return outputs
  }

  private func checkedNames(
    _ outputs: Outputs, _ expecting: [String]?, at span: SourceSpan
  ) throws(Diagnostic) -> [String] {
    let names = outputs.values.map(\.name)
    guard let expecting else { return names }
    guard Set(names) == Set(expecting) else {
      throw .error(
        .paramSetsDiffer, "the parameter queries select different names",
        remedy: "select \(expecting.joined(separator: ", ")) in each", at: span)
    }
    return expecting
  }

  private func scalar(_ name: String, of outputs: Outputs) throws(Diagnostic) -> TypedScalar {
    for output in outputs.values where output.name == name { return output.scalar }
    throw .error(
      .paramSetsDiffer, "the parameter \(name) is not selected", at: definition.nameSpan)
  }

  private func warnIfDangerous(
    clientValues: [TypedScalar], clientSlots: [MatchSlot] = [], authenticated: Bool,
    _ context: inout PlanCompiler, at span: SourceSpan
  ) {
    guard !definition.acceptsDangerousQueries, !authenticated else { return }
    let usesClient =
      clientValues.contains(where: \.isClientChosen)
      || clientSlots.contains(where: \.isClientChosen)
    guard usesClient else { return }
    context.report(
      .warning(
        .warnDangerous, "any client may choose the values of this query",
        remedy: "match a value of the token as well, "
          + "or set accept_potentially_dangerous_queries: true",
        at: span))
  }
}

extension MatchSlot {
  fileprivate var isClientChosen: Bool {
    if case .request(let expression, _) = self { return expression.isClientChosen }
    return false
  }
}

extension PlanExpression {
  /// Whether a value that the client sent takes part.
  fileprivate var isClientChosen: Bool {
    switch self {
    case .parameters, .userParameter: true
    case .not(let operand), .isNull(let operand, _), .cast(let operand, _),
      .member(let operand, _, _, _):
      operand.isClientChosen
    case .and(let left, let right), .or(let left, let right), .compare(_, let left, let right),
      .arithmetic(_, let left, let right), .concatenate(let left, let right),
      .contains(let left, let right):
      left.isClientChosen || right.isClientChosen
    case .call(_, let arguments): arguments.contains(where: \.isClientChosen)
    default: false
    }
  }
}
