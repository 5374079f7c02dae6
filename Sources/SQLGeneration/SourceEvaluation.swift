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
    return "SELECT d.key AS source_key, \(outputs) FROM \(Self.keys(of: dirty)) "
      + "CROSS JOIN LATERAL (\(ofKey("d.key"))) e"
  }

  /// The keys of a relation as `d`: each gives way to the collation of the column that it is compared
  /// with, and so to its index. `others` are columns to keep.
  static func keys(of dirty: String, keeping others: [String] = []) -> String {
    let kept = others.map { ", k.\($0)" }.joined()
    return "(SELECT k.key COLLATE \"default\" AS key\(kept) FROM \(dirty) k) d"
  }

  /// What the row with a key gives, to be joined laterally.
  func ofKey(_ key: String) -> String {
    let match = source.key.matches(alias: "s", keyText: key)
    let selects = branches.map { branch in
      select(branch, from: "\(table) s", extra: match, leading: nil)
    }
    return selects.joined(separator: " UNION ") + " OFFSET 0"
  }

  func overAll() -> String {
    over(rows: table)
  }

  /// What rows of the table give that another relation holds.
  func over(rows relation: String) -> String {
    branches.map { branch in
      select(branch, from: "\(relation) s", extra: nil, leading: source.key.text(of: "s"))
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
