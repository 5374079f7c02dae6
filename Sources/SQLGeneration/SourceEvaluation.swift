/// The statements that evaluate branches over the rows of a source table.
struct SourceEvaluation {
  let source: CompiledTable
  let columns: [String]
  let branches: [CompiledBranch]

  private var table: String {
    SQLIdentifier(schema: source.schema, name: source.name).description
  }

  /// One index lookup for each dirty key, never a join that the planner might turn around.
  func overKeys(of dirty: String) -> String {
    let outputs = columns.map { "e.\($0)" }.joined(separator: ", ")
    let match = source.key.matches(alias: "s", keyText: "d.key")
    let selects = branches.map { branch in
      select(branch, from: "\(table) s", extra: match, leading: nil)
    }
    let body = selects.joined(separator: " UNION ")
    // The key gives way to the collation of the column it is compared with, and so to its index.
    let keys = "(SELECT k.key COLLATE \"default\" AS key FROM \(dirty) k) d"
    return "SELECT d.key AS source_key, \(outputs) FROM \(keys) "
      + "CROSS JOIN LATERAL (\(body) OFFSET 0) e"
  }

  func overAll() -> String {
    branches.map { branch in
      select(branch, from: "\(table) s", extra: nil, leading: source.key.text(of: "s"))
    }.joined(separator: " UNION ")
  }

  private func select(
    _ branch: CompiledBranch, from: String, extra: String?, leading: String?
  ) -> String {
    var items = zip(branch.columns, columns).map { "\($0) AS \($1)" }
    if let leading { items.insert("\(leading) AS source_key", at: 0) }
    let distinct = branch.joins.isEmpty || branches.count > 1 ? "" : "DISTINCT "
    let joins = branch.joins.isEmpty ? "" : " " + branch.joins
    let conditions = [extra, branch.condition.isEmpty ? nil : branch.condition].compactMap(\.self)
    let filter = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
    return "SELECT \(distinct)\(items.joined(separator: ", ")) FROM \(from)\(joins)\(filter)"
  }
}
