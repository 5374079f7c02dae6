internal import Foundation
internal import Postgres
internal import SQLGeneration

/// Compares rules with what the database holds.
struct DeploymentSurvey {
  let connection: PostgresConnection
  let rules: CompiledRules

  /// Refuses tables that cannot be followed exactly.
  func check() async throws {
    for table in rules.tables {
      let name = "\(table.schema).\(table.name)"
      guard !table.key.columns.isEmpty else {
        throw StorageError(
          .noKey, "\(name) has no key by which its rows can be told apart",
          hint: "Give it a primary key, or a unique index over columns that are NOT NULL.")
      }
      let result = try await connection.query(
        """
        SELECT c.relkind::text, c.relpersistence::text,
          c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
        FROM pg_class c WHERE c.oid = to_regclass(format('%I.%I', $1::text, $2::text))
        """, [.text(table.schema), .text(table.name)])
      guard let kind = result.firstString(0) else {
        throw StorageError(
          .unsuitableTable, "there is no table \(name)",
          hint: "Check the rules against this database: `sluice check RULES --database URL`.")
      }
      guard kind == "r" || kind == "p" else {
        throw StorageError(
          .unsuitableTable, "\(name) is not a table, so its changes cannot be captured",
          hint: "Name the tables that it is made from.")
      }
      guard result.firstString(1) == "p" else {
        throw StorageError(
          .unsuitableTable, "\(name) is unlogged: PostgreSQL empties it after a crash, unseen",
          hint: "ALTER TABLE … SET LOGGED.")
      }
      guard result.firstBool(2) == false else {
        throw StorageError(
          .unsuitableTable, "\(name) has inheritance children, in which its key is not unique",
          hint: "Partition the table, or name the children in the rules.")
      }
    }
  }

  func plan() async throws -> DeploymentPlan {
    try await check()
    let current = try await connection.query(
      """
      SELECT d.name, d.content_hash, count(h.bucket), coalesce(sum(h.row_count), 0)::bigint
      FROM sluice.definitions d LEFT JOIN sluice.buckets b ON b.definition = d.id
      LEFT JOIN sluice.bucket_heads h ON h.bucket = b.id
      WHERE d.state = 'active' GROUP BY d.id ORDER BY d.id
      """)
    var held: [String: (hash: String, buckets: Int64, rows: Int64)] = [:]
    var order: [String] = []
    for row in 0..<current.rowCount {
      guard let name = current.string(row, 0), let hash = current.string(row, 1) else { continue }
      held[name] = (hash, current.int(row, 2) ?? 0, current.int(row, 3) ?? 0)
      order.append(name)
    }
    var estimates: [Int64] = []
    var tables: [DeploymentPlan.Table] = []
    for table in rules.tables {
      let result = try await connection.query(
        """
        SELECT NOT EXISTS (
          SELECT FROM sluice.sources s WHERE s.schema = $1::text AND s.name = $2::text)
        """, [.text(table.schema), .text(table.name)])
      estimates.append(try await rows(of: table))
      tables.append(
        DeploymentPlan.Table(
          schema: table.schema, name: table.name, isNew: result.firstBool(0) ?? true))
    }
    var definitions = rules.definitions.map { definition in
      let old = held.removeValue(forKey: definition.name)
      let change: DeploymentPlan.Change =
        old.map { $0.hash == definition.contentHash ? .unchanged : .changed } ?? .added
      let read = definition.queries.map(\.table) + definition.lookups.map(\.table)
      return DeploymentPlan.Definition(
        name: definition.name, change: change, buckets: old?.buckets ?? 0, rows: old?.rows ?? 0,
        rowsToRead: change == .unchanged ? 0 : read.reduce(0) { $0 + estimates[$1] })
    }
    for name in order {
      guard let old = held[name] else { continue }
      definitions.append(
        DeploymentPlan.Definition(
          name: name, change: .removed, buckets: old.buckets, rows: old.rows, rowsToRead: 0))
    }
    return DeploymentPlan(definitions: definitions, tables: tables)
  }

  /// Tables with more rows are not counted.
  static let countLimit: Int64 = 10_000

  /// The rows of a table: counted when they are few, else as the planner estimates them. Its statistics
  /// alone say nothing of a table that was never analysed; the planner goes by its size then.
  private func rows(of table: CompiledTable) async throws -> Int64 {
    let name = SQLIdentifier(schema: table.schema, name: table.name)
    let counted = try await connection.query(
      "SELECT count(*) FROM (SELECT FROM \(name) LIMIT \(Self.countLimit + 1)) r")
    let count = counted.firstInt(0) ?? 0
    guard count > Self.countLimit else { return count }
    let explained = try await connection.query("EXPLAIN (FORMAT JSON) SELECT FROM \(name)")
    let text = explained.firstString(0) ?? "[]"
    let plans = try JSONDecoder().decode([Explained].self, from: Data(text.utf8))
    return max(count, plans.first.map { Int64($0.plan.rows) } ?? 0)
  }
}

/// What is read of PostgreSQL's `EXPLAIN (FORMAT JSON)`.
private struct Explained: Decodable {
  struct Plan: Decodable {
    let rows: Double

    enum CodingKeys: String, CodingKey {
      case rows = "Plan Rows"
    }
  }

  let plan: Plan

  enum CodingKeys: String, CodingKey {
    case plan = "Plan"
  }
}
