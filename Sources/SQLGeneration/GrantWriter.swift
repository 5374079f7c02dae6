import SyncRules

/// Writes a parameter query as a request asks it.
struct GrantWriter {
  private var expressions = ExpressionWriter()

  mutating func write(_ grant: PlanGrant, ordinal: Int) -> CompiledGrant {
    let outputs = grant.outputs.map { output in
      switch output {
      case .request(let expression):
        let value = expressions.value(expression)
        return value.form == .blob ? "NULL::text" : "coalesce(\(value.asKey), 'null')"
      case .lookup(let index):
        return "(p.value::json -> \(index))::text"
      }
    }
    let isWholeValue =
      !outputs.isEmpty
      && grant.outputs.enumerated().allSatisfy { $0.element == .lookup($0.offset) }
    let bucketKey = isWholeValue ? "p.value" : BranchWriter.array(outputs)
    if let lookup = grant.lookup {
      return overLookup(grant, ordinal: ordinal, lookup: lookup, bucketKey: bucketKey)
    }
    var from = "r"
    if let elements = grant.elements {
      // Anything but an array has no elements.
      let list = expressions.jsonArray(of: elements)
      from += " CROSS JOIN LATERAL sluice.array_values(\(list)) j"
    }
    let conditions = self.conditions(grant) + ["(\(bucketKey)) IS NOT NULL"]
    let sql =
      "SELECT \(bucketKey) AS bucket_key, \(grant.priority) AS priority, "
      + "NULL::int AS lookup_ordinal, NULL::text AS lookup_key FROM \(from) "
      + "WHERE \(conditions.joined(separator: " AND "))"
    return CompiledGrant(ordinal: ordinal, lookup: nil, pieces: [sql])
  }

  private mutating func overLookup(
    _ grant: PlanGrant, ordinal: Int, lookup: Int, bucketKey: String
  ) -> CompiledGrant {
    var joins = ""
    var key: [String] = []
    var conditions: [String] = []
    for part in grant.key {
      if part.expands {
        let list = expressions.jsonArray(of: part.value)
        joins += " CROSS JOIN LATERAL sluice.array_keys(\(list)) a\(key.count)(key)"
        key.append("a\(key.count).key")
      } else {
        let value = expressions.value(part.value)
        if value.form == .blob { conditions.append("FALSE") }
        key.append("(\(value.asKey))")
      }
    }
    let keyText = BranchWriter.array(key)
    conditions += self.conditions(grant) + ["(\(keyText)) IS NOT NULL"]
    let keys =
      "SELECT \(keyText) AS key FROM (SELECT) one\(joins) "
      + "WHERE \(conditions.joined(separator: " AND ")) OFFSET 0"
    let head =
      "SELECT CASE WHEN p.value IS NOT NULL THEN \(bucketKey) END AS bucket_key, "
      + "\(grant.priority) AS priority, \(lookup) AS lookup_ordinal, k.key AS lookup_key "
      + "FROM r CROSS JOIN LATERAL (\(keys)) k LEFT JOIN sluice.parameters p ON p.lookup = "
    return CompiledGrant(ordinal: ordinal, lookup: lookup, pieces: [head, " AND p.key = k.key"])
  }

  private mutating func conditions(_ grant: PlanGrant) -> [String] {
    let conditions = grant.conditions.map { expressions.value($0).truth }
    return conditions + expressions.guards
  }
}
