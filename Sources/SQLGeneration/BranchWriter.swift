import SyncRules

/// Writes the branches of a data query or a lookup.
///
/// A row error anywhere in a query takes the whole query from the row, so the guards of all branches
/// stand in each.
struct BranchWriter {
  var expressions = ExpressionWriter()

  private struct Draft {
    var joins: [String] = []
    var conditions: [String] = []
    /// The texts of the key's places.
    var key: [String] = []
  }

  /// `columns` makes the output columns of a branch from its key, a JSON array as text.
  mutating func write(
    _ branches: [PlanBranch], columns: (String) -> [String]
  ) -> [CompiledBranch] {
    let drafts = branches.map { draft($0) }
    var guards: [String] = []
    for condition in expressions.guards where !guards.contains(condition) {
      guards.append(condition)
    }
    return drafts.map { draft in
      var conditions: [String] = []
      for condition in draft.conditions + guards where !conditions.contains(condition) {
        conditions.append(condition)
      }
      return CompiledBranch(
        joins: draft.joins.joined(separator: " "), columns: columns(Self.array(draft.key)),
        condition: conditions.joined(separator: " AND "))
    }
  }

  /// SQL for JSON texts as one JSON array text.
  static func array(_ elements: [String]) -> String {
    guard !elements.isEmpty else { return "'[]'" }
    return "'[' || \(elements.joined(separator: " || ',' || ")) || ']'"
  }

  private mutating func draft(_ branch: PlanBranch) -> Draft {
    var draft = Draft()
    for (index, elements) in branch.elements.enumerated() {
      let list = expressions.elements(of: elements)
      draft.joins.append("CROSS JOIN LATERAL \(list) e\(index)")
    }
    for place in branch.parts {
      let texts = place.map { key($0, of: branch, &draft) }
      guard let first = texts.first else { continue }
      draft.key.append("(\(first))")
      for other in texts.dropFirst() { draft.conditions.append("(\(first)) = (\(other))") }
    }
    for condition in branch.conditions {
      draft.conditions.append(expressions.value(condition).truth)
    }
    return draft
  }

  private mutating func key(
    _ part: PlanExpression, of branch: PlanBranch, _ draft: inout Draft
  ) -> String {
    // Of a bucket definition's array only texts and numbers match; `json_each` gives every value.
    if case .elementValue(let index) = part, !branch.elements[index].takesObjects {
      draft.conditions.append("e\(index).key IS NOT NULL")
      return "e\(index).key"
    }
    let value = expressions.value(part)
    draft.conditions.append("(\(value.sql)) IS NOT NULL")
    if value.form == .blob || value.form == .null { draft.conditions.append("FALSE") }
    return value.asKey
  }
}
