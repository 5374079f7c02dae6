package import SyncRules

/// Turns a plan into SQL for PostgreSQL.
package enum SQLGenerator {
  /// The plan as SQL.
  package static func compile(_ plan: SyncPlan) -> CompiledRules {
    let tables = plan.sources.map { source in
      CompiledTable(
        schema: source.schema, name: source.name, key: SourceKey(columns: source.key))
    }
    let definitions = plan.definitions.map { definition in
      DefinitionGenerator(plan: plan, tables: tables, definition: definition).compile()
    }
    return CompiledRules(
      definitions: definitions, tables: tables,
      schema: PublishedSchema.tables(of: plan.definitions.flatMap(\.queries)),
      helperVersion: HelperFunctions.version)
  }
}

/// Generates the SQL of one definition.
private struct DefinitionGenerator {
  let plan: SyncPlan
  let tables: [CompiledTable]
  let definition: PlanDefinition

  func compile() -> CompiledDefinition {
    var hash = ContentHash()
    hash.add([plan.version, HelperFunctions.version])
    hash.add(definition.withoutSources)
    let used = definition.queries.map(\.source) + definition.lookups.map(\.source)
    hash.add(used.map { plan.sources[$0] })
    return CompiledDefinition(
      name: definition.name,
      stream: definition.stream.map { CompiledStream(name: $0.name, isDefault: $0.isDefault) },
      priority: definition.priority, contentHash: hash.text,
      queries: definition.queries.enumerated().map { query($0, $1) },
      lookups: definition.lookups.enumerated().map { lookup($0, $1) },
      grants: definition.grants.enumerated().map { ordinal, grant in
        var writer = GrantWriter(definition)
        return writer.write(grant, ordinal: ordinal)
      })
  }

  private func query(_ ordinal: Int, _ query: PlanQuery) -> CompiledQuery {
    var writer = BranchWriter()
    let objectID = writer.expressions.value(query.objectID)
    let id = objectID.form == .blob ? "''" : "coalesce(\(objectID.asText), '')"
    var row = RowWriter()
    for column in query.columns {
      let value = writer.expressions.value(column.value)
      if value.form == .blob {
        row.addBlob(column.name, value)
      } else {
        row.add(column.name, value)
      }
    }
    let data = row.finish()
    let branches = writer.write(query.branches) { key in [key, id, data] }
    var hash = ContentHash()
    hash.add([plan.version, HelperFunctions.version])
    hash.add(plan.sources[query.source])
    hash.add(query.withoutSource)
    hash.add(definition.parameters)
    return CompiledQuery(
      ordinal: ordinal, table: query.source, outputName: query.outputName,
      contentHash: hash.text, usesSubkey: usesSubkey(query), source: tables[query.source],
      branches: branches, columns: columns(of: query.source, and: writer),
      moments: writer.expressions.moments)
  }

  private func lookup(_ ordinal: Int, _ lookup: PlanLookup) -> CompiledLookup {
    var writer = BranchWriter()
    let values = lookup.values.map { Self.element(writer.expressions.value($0)) }
    let branches = writer.write(lookup.branches) { key in [key, BranchWriter.array(values)] }
    var hash = ContentHash()
    hash.add([plan.version, HelperFunctions.version])
    hash.add(plan.sources[lookup.source])
    hash.add(lookup.withoutSource)
    return CompiledLookup(
      ordinal: ordinal, table: lookup.source, contentHash: hash.text,
      source: tables[lookup.source], branches: branches,
      columns: columns(of: lookup.source, and: writer), moments: writer.expressions.moments)
  }

  /// A value in the JSON array of a lookup's row. JSON has no NaN and no infinity, which match nothing.
  private static func element(_ value: SQLValue) -> String {
    guard value.form == .real else { return "coalesce(\(value.asKey), 'null')" }
    return "CASE WHEN abs(\(value.sql)) < 'Infinity' THEN \(value.asKey) ELSE 'null' END"
  }

  private func columns(of source: Int, and writer: BranchWriter) -> [String] {
    writer.expressions.columns.union(tables[source].key.columns.map(\.name)).sorted()
  }

  /// Whether two source rows, or two queries, may give the same table and id in one bucket.
  private func usesSubkey(_ query: PlanQuery) -> Bool {
    if definition.queries.count(where: { $0.outputName == query.outputName }) > 1 { return true }
    let key = plan.sources[query.source].key
    guard key.count == 1, case .column(key[0].name, let conversion) = query.objectID else {
      return true
    }
    switch conversion {
    case .integer, .text: return false
    default: return true
    }
  }
}

// For hashing: the place of a table in the plan means nothing.

extension PlanDefinition {
  fileprivate var withoutSources: PlanDefinition {
    var copy = self
    copy.queries = queries.map(\.withoutSource)
    copy.lookups = lookups.map(\.withoutSource)
    return copy
  }
}

extension PlanQuery {
  fileprivate var withoutSource: PlanQuery {
    var copy = self
    copy.source = 0
    return copy
  }
}

extension PlanLookup {
  fileprivate var withoutSource: PlanLookup {
    var copy = self
    copy.source = 0
    return copy
  }
}
