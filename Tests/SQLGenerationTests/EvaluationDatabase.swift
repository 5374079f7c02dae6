import Postgres
import SQLGeneration
import SyncRules
import TestSupport

extension TestDatabase {
  /// A connection as the sequencer has one, with the helper functions installed.
  func connectForEvaluation() async throws -> PostgresConnection {
    let connection = try await connect(settings: CompiledRules.sessionSettings)
    try await connection.execute("CREATE SCHEMA IF NOT EXISTS sluice")
    try await connection.execute(HelperFunctions.sql)
    try await connection.execute(
      """
      CREATE TABLE IF NOT EXISTS sluice.parameters
        (lookup bigint, key text, source_key text, value text)
      """)
    return connection
  }
}

extension SyncPlan {
  /// A plan with one definition without parameters: these columns of one table.
  static func selecting(
    _ columns: [PlanQuery.Column], from table: CatalogTable
  ) -> SyncPlan {
    let key = table.key.compactMap { table.column($0).flatMap { PlanKeyColumn($0) } }
    let query = PlanQuery(
      source: 0, outputName: table.name, columns: columns,
      branches: [PlanBranch(parts: [], conditions: [])])
    let definition = PlanDefinition(
      name: "all", priority: 3, parameters: [], queries: [query], lookups: [],
      grants: [PlanGrant(priority: 3, conditions: [], outputs: [])])
    return SyncPlan(
      sources: [PlanSource(schema: table.schema, name: table.name, key: key)],
      definitions: [definition])
  }
}
