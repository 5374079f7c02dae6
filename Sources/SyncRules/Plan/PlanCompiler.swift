/// Turns a rules file into a plan: names resolved against the catalog, types known, meaning checked.
///
///     let (plan, diagnostics) = PlanCompiler.compile(ruleSet, catalog)
///
/// Without a catalog everything is checked that needs none, and there is no plan.
package struct PlanCompiler {
  /// The plan is nil when any diagnostic is an error, or when there is no catalog.
  package static func compile(
    _ rules: RuleSet, _ catalog: Catalog?
  ) -> (plan: SyncPlan?, diagnostics: [Diagnostic]) {
    var compiler = PlanCompiler(rules: rules, catalog: catalog)
    compiler.run()
    let isUsable = catalog != nil && !compiler.diagnostics.hasErrors
    let plan = SyncPlan(sources: compiler.sources, definitions: compiler.definitions)
    return (isUsable ? plan : nil, compiler.diagnostics)
  }

  let rules: RuleSet
  let catalog: Catalog?
  private(set) var diagnostics: [Diagnostic] = []
  private var sources: [PlanSource] = []
  private var definitions: [PlanDefinition] = []

  private init(rules: RuleSet, catalog: Catalog?) {
    self.rules = rules
    self.catalog = catalog
  }

  private mutating func run() {
    if let event = rules.events.first {
      report(
        .warning(
          .warnEvents, "event definitions have no effect here", at: event.nameSpan))
    }
    for definition in rules.bucketDefinitions {
      var compiler = DefinitionCompiler(definition: definition, context: self)
      let compiled = compiler.compile()
      self = compiler.context
      if let compiled { add(compiled, at: definition.nameSpan) }
    }
    compileStreams()
    requireDistinctNames()
  }

  private mutating func compileStreams() {
    var used: Set<String> = []
    for stream in rules.streams {
      var compiler = StreamCompiler(stream: stream, context: self)
      let compiled = compiler.compile()
      self = compiler.context
      for definition in compiled.definitions { add(definition, at: stream.nameSpan) }
      used.formUnion(compiled.usedQueries)
    }
    for query in rules.sharedQueries {
      check(query)
      if !used.contains(query.name) { report(.unused(query)) }
    }
  }

  private mutating func add(_ definition: PlanDefinition, at span: SourceSpan) {
    definitions.append(definition)
    guard catalog != nil else { return }
    report(DefinitionLint(definition: definition, sources: sources, span: span).findings)
  }

  /// A bucket definition could have the name of a part of a stream.
  private mutating func requireDistinctNames() {
    for definition in rules.bucketDefinitions
    where definitions.count(where: { $0.name == definition.name }) > 1 {
      report(
        .error(
          .duplicateName, "a stream's buckets have the name '\(definition.name)' already",
          remedy: "give the definition another name", at: definition.nameSpan))
    }
  }

  /// Once, however often it is found.
  mutating func report(_ diagnostic: Diagnostic) {
    if !diagnostics.contains(diagnostic) { diagnostics.append(diagnostic) }
  }

  mutating func report(_ more: [Diagnostic]) {
    for diagnostic in more { report(diagnostic) }
  }

  /// Finds what is wrong with a query of `with`, used or not.
  mutating func check(_ query: NamedQuery) {
    var binder = StreamBinder(
      edition: rules.edition, namedQueries: [], choices: [], context: self)
    do {
      try binder.check(query)
      self = binder.context
    } catch {
      self = binder.context
      report(error)
    }
    guard catalog?.table(schema: "public", name: query.name) != nil else { return }
    report(
      .warning(
        .warnShadow, "the query '\(query.name)' hides the table public.\(query.name)",
        remedy: "give it another name, or write public.\(query.name) for the table",
        at: query.nameSpan))
  }

  /// The index of a table among the plan's sources.
  mutating func source(
    of table: CatalogTable, at span: SourceSpan
  ) throws(Diagnostic) -> Int {
    if let known = sources.firstIndex(where: {
      $0.schema == table.schema && $0.name == table.name
    }) {
      return known
    }
    guard table.kind == .table || table.kind == .partitioned else {
      throw .error(
        .notATable, "\(table.schema).\(table.name) is not a table, so its changes are not seen",
        remedy: "name the table that it reads", at: span)
    }
    guard !table.key.isEmpty else {
      throw .error(
        .noKey, "\(table.schema).\(table.name) has no primary key",
        remedy: "add one, or a unique index on columns that are not null", at: span)
    }
    var key: [PlanKeyColumn] = []
    for name in table.key {
      guard let column = table.column(name).flatMap({ PlanKeyColumn($0) }) else {
        throw .error(
          .keyType,
          "the type of the key column \(name) of \(table.schema).\(table.name) is not supported",
          remedy: "use a number, text, uuid, date or time", at: span)
      }
      key.append(column)
    }
    sources.append(PlanSource(schema: table.schema, name: table.name, key: key))
    return sources.count - 1
  }

  /// The tables that a name in FROM stands for; a table that does not exist draws a warning.
  mutating func tables(named table: TableName) -> [ResolvedTable] {
    let schema = table.schemaName ?? "public"
    let name = table.name.name
    guard let catalog else { return [ResolvedTable(name: name, table: nil, suffix: nil)] }
    guard table.isWildcard || table.isSchemaWildcard else {
      if let found = catalog.table(schema: schema, name: name) {
        return [ResolvedTable(name: name, table: found, suffix: nil)]
      }
      report(
        .warning(
          .warnTable, "there is no table \(schema).\(name)",
          remedy: "create it and deploy again", at: table.span))
      return []
    }
    report(
      .warning(
        .warnWildcard, "tables that are created later are followed after the next deployment",
        at: table.span))
    let schemaPrefix = table.isSchemaWildcard ? String(schema.dropLast()) : nil
    let namePrefix = table.isWildcard ? String(name.dropLast()) : nil
    return catalog.tables.filter { candidate in
      let inSchema = schemaPrefix.map(candidate.schema.hasPrefix) ?? (candidate.schema == schema)
      let isNamed = namePrefix.map(candidate.name.hasPrefix) ?? (candidate.name == name)
      let isOrdinary = candidate.kind == .table || candidate.kind == .partitioned
      let isSystem =
        candidate.schema.hasPrefix("pg_")
        || ["information_schema", "sluice"].contains(candidate.schema)
      return inSchema && isNamed && isOrdinary && !(isSystem && schemaPrefix != nil)
    }.map { found in
      ResolvedTable(
        name: found.name, table: found,
        suffix: namePrefix.map { String(found.name.dropFirst($0.count)) } ?? "")
    }
  }
}

/// A table that a query reads.
struct ResolvedTable {
  var name: String
  /// Nil when there is no catalog.
  var table: CatalogTable?
  /// What a wildcard stands for.
  var suffix: String?
}
