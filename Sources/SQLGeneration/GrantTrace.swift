package import SyncRules

/// How a request fares in one grant: SQL, and the words for what it answers.
package struct GrantTrace: Sendable {
  package struct Step: Sendable, Equatable {
    /// Where the step looks, and for what.
    package let text: String
    /// Whether it is a lookup, which may find nothing.
    package let isLookup: Bool
  }

  package struct Condition: Sendable, Equatable {
    /// In the rules' language.
    package let text: String
    /// The values of the request that it reads, each in the rules' language.
    package let reads: [String]
  }

  /// A SELECT over the relation `r` of requests, as a grant's. Columns: the bucket's key, or NULL; the
  /// place of the subscription; for each condition whether it holds, and then the values that it reads as
  /// JSON texts; for each step its key or element, then what it found, which is NULL for an element; and for
  /// each of `equalities` the texts of its values.
  package let statement: CompiledGrant
  package let conditions: [Condition]
  package let steps: [Step]
  /// Values that have to be equal to be a parameter of the bucket, each in the rules' language.
  package let equalities: [[String]]

  package init(_ grant: PlanGrant, ordinal: Int, of definition: PlanDefinition, in plan: SyncPlan) {
    var writer = GrantWriter(definition)
    var tests: [String] = []
    var conditions: [Condition] = []
    for condition in grant.conditions {
      tests.append("(\(writer.expressions.value(condition).truth))")
      let reads = condition.requestValues
      tests += reads.map { writer.expressions.value($0).asJSON }
      conditions.append(Condition(text: condition.ruleText, reads: reads.map(\.ruleText)))
    }
    var sql = GrantText()
    var outputs: [String] = []
    sql.add(" FROM \(writer.requests)")
    for (place, step) in grant.steps.enumerated() {
      switch step {
      case .elements(let elements):
        sql.add(" LEFT JOIN LATERAL \(writer.expressions.elements(of: elements)) e\(place) ON true")
        outputs += ["e\(place).key", "NULL::text"]
      case .lookup(let lookup, let key):
        let parts = key.map { writer.keyText($0) }
        sql.add(
          " LEFT JOIN LATERAL (SELECT \(BranchWriter.array(parts)) AS key OFFSET 0) k\(place) ")
        sql.add("ON true LEFT JOIN sluice.parameters f\(place) ON f\(place).lookup = ")
        sql.add(lookup: lookup)
        sql.add(" AND f\(place).key = k\(place).key")
        outputs += ["k\(place).key", "f\(place).value"]
      }
    }
    let values = grant.outputs.map { place in place.map { writer.outputText($0) } }
    let equal = values.flatMap { place in place.dropFirst().map { "\(place[0]) = \($0)" } }
    let bucket = BranchWriter.array(values.map { $0[0] })
    var known: Set<String> = []
    for test in writer.expressions.guards where known.insert(test).inserted {
      tests.append("((\(test)) IS TRUE)")
      conditions.append(
        Condition(
          text: "the values of the token and of the client are the JSON that is needed", reads: []))
    }
    let found = grant.steps.indices.last { Self.isLookup(grant.steps[$0]) }
      .map { ["f\($0).value IS NOT NULL"] }
    let columns =
      ["CASE WHEN \(BranchWriter.all((found ?? []) + equal)) THEN \(bucket) END AS bucket_key"]
      + ["r.subscription_place"] + tests + outputs
      + values.filter { $0.count > 1 }.flatMap(\.self)
    statement = sql.grant(ordinal: ordinal, leading: "SELECT " + columns.joined(separator: ", "))
    self.conditions = conditions
    equalities = grant.outputs.filter { $0.count > 1 }
      .map { place in place.map { grant.text(of: $0, in: definition, plan) } }
    steps = grant.steps.map { step in
      switch step {
      case .elements(let elements):
        Step(text: "the elements of \(elements.value.ruleText)", isLookup: false)
      case .lookup(let lookup, let key):
        Step(
          text: Self.text(of: lookup, key: key, grant, of: definition, in: plan), isLookup: true
        )
      }
    }
  }

  private static func isLookup(_ step: PlanGrant.Step) -> Bool {
    if case .lookup = step { true } else { false }
  }

  private static func text(
    of place: Int, key: [PlanExpression], _ grant: PlanGrant, of definition: PlanDefinition,
    in plan: SyncPlan
  ) -> String {
    let lookup = definition.lookups[place]
    let table = plan.sources[lookup.source].name
    let ways = lookup.branches.map { branch in
      let matches = zip(branch.parts, key).map { part, value in
        "\(part.map { branch.text(of: $0) }.joined(separator: " = ")) = \(grant.text(of: value, in: definition, plan))"
      }
      return (matches + branch.conditions.map(\.ruleText)).joined(separator: " AND ")
    }.filter { !$0.isEmpty }
    return ways.isEmpty ? table : "\(table) WHERE \(ways.joined(separator: " OR "))"
  }
}

/// Which requests a grant gives a bucket to: SQL, and the words for what it answers.
package struct HolderTrace: Sendable {
  /// A SELECT of what requests must bring to reach the bucket whose key is the `json` in `b.key`: one
  /// column for each requirement, its value as JSON text.
  package let statement: CompiledGrant
  /// What each of the columns is the value of.
  package let requirements: [String]
  /// What a request must fulfil besides.
  package let conditions: [String]

  package init(_ grant: PlanGrant, ordinal: Int) {
    var sql = GrantText()
    var columns: [String] = []
    var requirements: [String] = []
    var tests: [String] = []
    func require(_ expression: PlanExpression, _ value: String) {
      if case .found(let step, let place) = expression {
        tests.append("(f\(step).value::json -> \(place))::text = \(value)")
      } else {
        columns.append(value)
        requirements.append(grant.text(of: expression))
      }
    }
    sql.add(" FROM b")
    for (place, step) in grant.steps.enumerated() {
      guard case .lookup(let lookup, let key) = step else { continue }
      sql.add(" JOIN sluice.parameters f\(place) ON f\(place).lookup = ")
      sql.add(lookup: lookup)
      for (part, value) in key.enumerated() {
        require(value, "(f\(place).key::json -> \(part))::text")
      }
    }
    for (place, values) in grant.outputs.enumerated() {
      for value in values { require(value, "(b.key -> \(place))::text") }
    }
    sql.add(" WHERE \(BranchWriter.all(tests))")
    let selected = columns.isEmpty ? ["true"] : columns
    statement = sql.grant(
      ordinal: ordinal, leading: "SELECT DISTINCT \(selected.joined(separator: ", "))")
    self.requirements = requirements
    conditions = grant.conditions.map(\.ruleText)
  }
}

/// SQL with gaps for the numbers of lookups.
private struct GrantText {
  private var pieces = [""]
  private var lookups: [Int] = []

  mutating func add(_ text: String) { pieces[pieces.count - 1] += text }

  mutating func add(lookup: Int) {
    lookups.append(lookup)
    pieces.append("")
  }

  func grant(ordinal: Int, leading: String) -> CompiledGrant {
    var pieces = pieces
    pieces[0] = leading + pieces[0]
    return CompiledGrant(ordinal: ordinal, lookups: lookups, pieces: pieces)
  }
}
