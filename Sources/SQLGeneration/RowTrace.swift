package import SyncRules

/// How one row of a source table fares in one branch of a query or a lookup: SQL, and the words for what it
/// answers.
package struct RowTrace: Sendable {
  /// Something that must hold for the row to reach the output.
  package struct Condition: Sendable, Equatable {
    /// In the rules' language.
    package let text: String
    /// The row's columns that it reads.
    package let columns: [String]
  }

  /// A SELECT of the row whose key text is `$1`: one result row for each combination of the branch's
  /// elements. Columns: the output's key, or NULL; then whether each condition holds; then the value of
  /// each of `columns` as JSON text.
  package let sql: String
  package let conditions: [Condition]
  package let columns: [String]

  /// The branches of a data query.
  package static func branches(of query: PlanQuery, key: SourceKey, in plan: SyncPlan) -> [RowTrace]
  {
    let source = plan.sources[query.source]
    let values = [query.objectID] + query.columns.map(\.value)
    return query.branches.map { RowTraceWriter(source, key).trace($0, all: query.branches, values) }
  }
}

private struct RowTraceWriter {
  let source: PlanSource
  let key: SourceKey
  private var conditions: [RowTrace.Condition] = []
  private var tests: [String] = []

  init(_ source: PlanSource, _ key: SourceKey) {
    self.source = source
    self.key = key
  }

  /// `all` and `values` are what else must have a value for the row to reach any output of the query.
  consuming func trace(
    _ branch: PlanBranch, all: [PlanBranch], _ values: [PlanExpression]
  ) -> RowTrace {
    var writer = self
    return writer.write(branch, all: all, values)
  }

  private mutating func write(
    _ branch: PlanBranch, all: [PlanBranch], _ values: [PlanExpression]
  ) -> RowTrace {
    var lists = ExpressionWriter()
    let joins = branch.elements.enumerated().map { index, elements in
      " LEFT JOIN LATERAL \(lists.elements(of: elements)) e\(index) ON true"
    }
    for condition in branch.conditions.flatMap(\.conjuncts) {
      var writer = ExpressionWriter()
      let test = writer.value(condition).truth
      add(condition.ruleText, test, writer.columns)
    }
    let places = branch.parts.map { place($0, of: branch) }
    addComputability(all, values)
    let columns = Set(conditions.flatMap(\.columns)).sorted()
    let outputs =
      ["CASE WHEN \(BranchWriter.all(tests)) THEN \(BranchWriter.array(places)) END"]
      + tests.map { "(\($0))" }
      + columns.map { "coalesce(to_json(\(SQLIdentifier("s").member($0)))::text, 'null')" }
    let table = SQLIdentifier(schema: source.schema, name: source.name)
    let sql =
      "SELECT \(outputs.joined(separator: ", ")) FROM \(table) s\(joins.joined()) "
      + "WHERE \(key.matches(alias: "s", keyText: "$1::text"))"
    return RowTrace(sql: sql, conditions: conditions, columns: columns)
  }

  /// SQL for the text of a place of the key, whose values must be there and be equal.
  private mutating func place(_ values: [PlanExpression], of branch: PlanBranch) -> String {
    var first: String?
    for value in values {
      if case .elementValue(let index) = value {
        let list = branch.elements[index].value
        var writer = ExpressionWriter()
        _ = writer.value(list)
        add("\(list.ruleText) has elements", "e\(index).key IS NOT NULL", writer.columns)
        compare("e\(index).key", value, writer.columns, to: first, values)
        first = first ?? "e\(index).key"
        continue
      }
      var writer = ExpressionWriter()
      let part = writer.value(value)
      let isKey = part.form != .blob && part.form != .null
      add(
        "\(value.ruleText) IS NOT NULL", isKey ? "(\(part.sql)) IS NOT NULL" : "FALSE",
        writer.columns)
      compare("(\(part.asKey))", value, writer.columns, to: first, values)
      first = first ?? "(\(part.asKey))"
    }
    return first ?? "'null'"
  }

  private mutating func compare(
    _ text: String, _ value: PlanExpression, _ columns: Set<String>, to first: String?,
    _ values: [PlanExpression]
  ) {
    guard let first else { return }
    add(
      "\(values[0].ruleText) = \(value.ruleText)", "(\(first) = \(text)) IS TRUE", columns)
  }

  /// One value that cannot be computed takes the row out of the whole query.
  private mutating func addComputability(
    _ all: [PlanBranch], _ values: [PlanExpression]
  ) {
    var seen: Set<String> = []
    for elements in all.flatMap(\.elements) {
      var writer = ExpressionWriter()
      _ = writer.elements(of: elements)
      addGuards(of: writer, elements.value, &seen)
    }
    for value in all.flatMap({ $0.parts.flatMap(\.self) + $0.conditions }) + values {
      var writer = ExpressionWriter()
      _ = writer.value(value)
      addGuards(of: writer, value, &seen)
    }
  }

  private mutating func addGuards(
    of writer: ExpressionWriter, _ value: PlanExpression, _ seen: inout Set<String>
  ) {
    for test in writer.guards where seen.insert(test).inserted {
      add("\(value.ruleText) can be computed", "(\(test)) IS TRUE", writer.columns)
    }
  }

  private mutating func add(_ text: String, _ test: String, _ columns: Set<String>) {
    guard !tests.contains(test) else { return }
    tests.append(test)
    conditions.append(RowTrace.Condition(text: text, columns: columns.sorted()))
  }
}

extension BranchWriter {
  /// SQL that is true when every condition is.
  static func all(_ conditions: [String]) -> String {
    conditions.isEmpty ? "true" : conditions.map { "(\($0))" }.joined(separator: " AND ")
  }
}
