import SyncRules

/// The tables that replicas have, from what the queries output.
enum PublishedSchema {
  /// Tables and columns in the order of their first appearance, tables sorted by name.
  static func tables(of queries: [PlanQuery]) -> [PublishedTable] {
    var columns: [String: [(name: String, valueClass: ValueClass)]] = [:]
    for query in queries {
      var known = columns[query.outputName] ?? []
      for column in query.columns where column.name != "id" {
        let valueClass = column.value.valueClass
        if let index = known.firstIndex(where: { $0.name == column.name }) {
          known[index].valueClass = merged(known[index].valueClass, valueClass)
        } else {
          known.append((column.name, valueClass))
        }
      }
      columns[query.outputName] = known
    }
    return columns.sorted { $0.key < $1.key }.map { name, columns in
      PublishedTable(
        name: name,
        columns: columns.compactMap { column in
          type(column.valueClass).map { PublishedTable.Column(name: column.name, type: $0) }
        })
    }
  }

  private static func merged(_ left: ValueClass, _ right: ValueClass) -> ValueClass {
    if left == right || right == .null || right == .blob { return left }
    return left == .null || left == .blob ? right : .dynamic
  }

  /// Nil for binary values, which never leave.
  private static func type(_ valueClass: ValueClass) -> String? {
    switch valueClass {
    case .integer: "integer"
    case .real: "real"
    case .text: "text"
    case .dynamic, .null: "any"
    case .blob: nil
    }
  }
}
