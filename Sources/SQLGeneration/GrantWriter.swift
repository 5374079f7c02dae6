import SyncRules

/// Writes a grant as a request asks it: a chain of laterals from the request outward.
///
/// Step `n` is `e<n>` for the elements of a request's value, and `k<n>`, `f<n>` for the key looked up and
/// what stands under it. Every key that was consulted comes out, whether or not it has a row, because a
/// row that appears there later must be noticed.
struct GrantWriter {
  let definition: PlanDefinition
  var expressions = ExpressionWriter()
  private var pieces = [""]
  private var lookups: [Int] = []

  init(_ definition: PlanDefinition) {
    self.definition = definition
  }

  mutating func write(_ grant: PlanGrant, ordinal: Int) -> CompiledGrant {
    let conditions = grant.conditions.map { expressions.value($0).truth }
    let chain = grant.steps.enumerated().map { step($0, $1) }
    let outputs = grant.outputs.map { values in values.map { outputText($0) } }
    // The guards of every expression are known by now, and each stands before the first lookup.
    let request = conditions + expressions.guards
    let found = chain.last { $0.key != nil }.map { ["f\($0.place).value IS NOT NULL"] } ?? []
    let equal = outputs.flatMap { texts in texts.dropFirst().map { "\(texts[0]) = \($0)" } }
    let bucketKey = wholeValue(grant) ?? BranchWriter.array(outputs.map { $0[0] })
    let isGranted = (found + equal).joined(separator: " AND ")

    add("SELECT o.bucket_key, coalesce(r.priority, \(grant.priority)) AS priority, o.lookup, ")
    add("o.lookup_key, r.subscription_place, NULL::text AS error FROM \(requests)")
    for step in chain where step.key == nil {
      add(" CROSS JOIN LATERAL \(step.elements) e\(step.place)")
    }
    add(" CROSS JOIN LATERAL (SELECT WHERE \(all(request)) OFFSET 0) g")
    var previous: Int?
    for step in chain {
      guard let key = step.key, let lookup = step.lookup else { continue }
      let reached = previous.map { "f\($0).value IS NOT NULL AND " } ?? ""
      add(" LEFT JOIN LATERAL (SELECT \(key) AS key WHERE \(reached)(\(key)) IS NOT NULL ")
      add("OFFSET 0) k\(step.place) ON true ")
      // Rows that give no values need not be told apart: that there is one is enough.
      let isGate = definition.lookups[lookup].values.isEmpty
      add(
        isGate
          ? "LEFT JOIN LATERAL (SELECT p.value FROM sluice.parameters p WHERE p.lookup = "
          : "LEFT JOIN sluice.parameters f\(step.place) ON f\(step.place).lookup = ")
      add(lookup: lookup)
      add(" AND \(isGate ? "p" : "f\(step.place)").key = k\(step.place).key")
      if isGate { add(" LIMIT 1) f\(step.place) ON true") }
      previous = step.place
    }
    let bucket = isGranted.isEmpty ? bucketKey : "CASE WHEN \(isGranted) THEN \(bucketKey) END"
    add(" CROSS JOIN LATERAL (VALUES (\(bucket), NULL::bigint, NULL::text)")
    for step in chain {
      guard let lookup = step.lookup else { continue }
      add(", (NULL, ")
      add(lookup: lookup)
      add(", k\(step.place).key)")
    }
    add(") o(bucket_key, lookup, lookup_key) ")
    add("WHERE o.bucket_key IS NOT NULL OR o.lookup_key IS NOT NULL")
    writeErrors(chain)
    return CompiledGrant(ordinal: ordinal, lookups: lookups, pieces: pieces)
  }

  /// A subscription whose values are not what the stream needs is told so.
  private mutating func writeErrors(_ chain: [ChainStep]) {
    guard let stream = definition.stream, !expressions.guards.isEmpty else { return }
    let message =
      "a value that the stream \(stream.name) reads from the token or the parameters is not the "
      + "JSON that it needs"
    add(" UNION ALL SELECT NULL, NULL, NULL, NULL, r.subscription_place, ")
    add("\(SQLLiteral(message)) ")
    add("FROM \(requests)")
    for step in chain where step.key == nil {
      add(" LEFT JOIN LATERAL \(step.elements) e\(step.place) ON true")
    }
    add(" WHERE NOT coalesce(\(all(expressions.guards)), false)")
  }

  /// The request once, or once for each subscription to the stream.
  var requests: String {
    guard let stream = definition.stream else {
      return "(SELECT r.claims, r.parameters, NULL::int AS priority, "
        + "NULL::int AS subscription_place FROM r) r"
    }
    return "(SELECT r.claims, r.parameters, s.parameters AS subscription, s.priority, "
      + "s.place AS subscription_place FROM r CROSS JOIN LATERAL sluice.subscriptions("
      + "r.subscriptions, \(SQLLiteral(stream.name)), "
      + "\(stream.isDefault ? "r.include_defaults" : "false")) s) r"
  }

  private struct ChainStep {
    var place: Int
    var elements = ""
    var lookup: Int?
    var key: String?
  }

  private mutating func step(_ place: Int, _ step: PlanGrant.Step) -> ChainStep {
    switch step {
    case .elements(let elements):
      return ChainStep(place: place, elements: expressions.elements(of: elements))
    case .lookup(let lookup, let key):
      let parts = key.map { keyText($0) }
      return ChainStep(place: place, lookup: lookup, key: BranchWriter.array(parts))
    }
  }

  /// A value as a part of a key. NULL is a bucket parameter of a bucket definition, and of nothing else.
  mutating func keyText(_ expression: PlanExpression) -> String {
    switch expression {
    case .found(let step, let value):
      return "(f\(step).value::json -> \(value))::text"
    default:
      let value = expressions.value(expression)
      return value.form == .blob ? "NULL::text" : "(\(value.asKey))"
    }
  }

  mutating func outputText(_ expression: PlanExpression) -> String {
    let text = keyText(expression)
    if case .found = expression { return text }
    return definition.stream == nil ? "coalesce(\(text), 'null')" : text
  }

  /// The lookup's values as they stand, when they are the bucket's parameters.
  private func wholeValue(_ grant: PlanGrant) -> String? {
    guard case .found(let step, 0)? = grant.outputs.first?.first,
      case .lookup(let lookup, _) = grant.steps[step],
      definition.lookups[lookup].values.count == grant.outputs.count,
      grant.outputs.enumerated().allSatisfy({
        $0.element == [.found(step: step, value: $0.offset)]
      })
    else { return nil }
    return "f\(step).value"
  }

  private func all(_ conditions: [String]) -> String {
    conditions.isEmpty ? "true" : conditions.map { "(\($0))" }.joined(separator: " AND ")
  }

  private mutating func add(_ text: String) { pieces[pieces.count - 1] += text }

  private mutating func add(lookup: Int) {
    lookups.append(lookup)
    pieces.append("")
  }
}
