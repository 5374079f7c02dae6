import BucketStorage
import SyncRules

/// What a deployment would change, for people and for programs.
struct DeploymentSummary: Encodable {
  struct Definition: Encodable {
    var name: String
    var change: String
    var buckets: Int64
    var rows: Int64
    var rowsToRead: Int64
    /// What is different about it; nil when that cannot be told.
    var differences: [Difference]?
  }

  struct Difference: Encodable {
    var text: String
    /// Whether somebody may get rows or columns that he did not get.
    var widensAccess: Bool
  }

  struct Table: Encodable {
    var name: String
    var isNew: Bool
  }

  var definitions: [Definition]
  var tables: [Table]

  /// `comparison` is with the rules in force; nil when there are none to compare with.
  init(_ plan: DeploymentPlan, comparison: PlanComparison?) {
    definitions = plan.definitions.map { definition in
      Definition(
        name: definition.name, change: definition.change.rawValue, buckets: definition.buckets,
        rows: definition.rows, rowsToRead: definition.rowsToRead,
        differences: definition.change == .unchanged
          ? []
          : comparison?.changes(of: definition.name).map {
            Difference(text: $0.text, widensAccess: $0.widens)
          })
    }
    tables = plan.tables.map { Table(name: "\($0.schema).\($0.name)", isNew: $0.isNew) }
  }

  var text: String {
    let width = definitions.map(\.name.count).max() ?? 0
    var lines = definitions.flatMap { definition in
      let name =
        definition.name + String(repeating: " ", count: width - definition.name.count)
      var line = "\(name)  \(definition.change)"
      switch definition.change {
      case "unchanged": line += ": \(definition.buckets) buckets, \(definition.rows) rows stay"
      case "removed": line += ": \(definition.buckets) buckets, \(definition.rows) rows go away"
      case "changed":
        line +=
          ": \(definition.buckets) buckets, \(definition.rows) rows are sent anew; "
          + "about \(definition.rowsToRead) rows to read"
      default: line += ": about \(definition.rowsToRead) rows to read"
      }
      return [line] + differences(of: definition)
    }
    for table in tables where table.isNew {
      lines.append("\(table.name) gets capture triggers")
    }
    let widening = definitions.flatMap { $0.differences ?? [] }.count(where: \.widensAccess)
    if widening > 0 {
      lines.append(
        widening == 1
          ? "! 1 change lets somebody have more than before"
          : "! \(widening) changes let somebody have more than before")
    }
    return lines.joined(separator: "\n")
  }

  private func differences(of definition: Definition) -> [String] {
    guard let differences = definition.differences else { return [] }
    if definition.change == "changed", differences.isEmpty {
      return ["    the types or options behind it are others"]
    }
    return differences.map { "  \($0.widensAccess ? "!" : " ") \($0.text)" }
  }
}
