/// Finds what is amiss between the parts of one definition: what its grants give and what its queries compare
/// it with.
struct DefinitionLint {
  let definition: PlanDefinition
  let sources: [PlanSource]
  let span: SourceSpan

  var findings: [Diagnostic] {
    let classes = definition.grants.flatMap { grant in
      outputClasses(grant) + keyClasses(grant)
    }
    return classes + definition.grants.compactMap { product($0) }
  }

  // MARK: Classes

  /// A request's value, with what its class is.
  private struct Given {
    var text: String
    var valueClass: ValueClass
  }

  /// Bucket parameters against the columns of the data queries.
  private func outputClasses(_ grant: PlanGrant) -> [Diagnostic] {
    definition.queries.flatMap { query in
      query.branches.flatMap { branch in
        zip(branch.parts, grant.outputs).flatMap { part, outputs in
          pairs(part, outputs).compactMap { value, output in
            mismatch(value, of: query.source, given(output, in: grant))
          }
        }
      }
    }
  }

  /// Keys of lookups against the columns that the lookups are by.
  private func keyClasses(_ grant: PlanGrant) -> [Diagnostic] {
    var findings: [Diagnostic] = []
    for case .lookup(let place, let key) in grant.steps {
      let lookup = definition.lookups[place]
      for branch in lookup.branches {
        for (part, value) in zip(branch.parts, key) {
          findings += part.compactMap {
            mismatch($0, of: lookup.source, given(value, in: grant))
          }
        }
      }
    }
    return findings
  }

  private func pairs(
    _ left: [PlanExpression], _ right: [PlanExpression]
  ) -> [(PlanExpression, PlanExpression)] {
    left.flatMap { one in right.map { (one, $0) } }
  }

  private func given(_ expression: PlanExpression, in grant: PlanGrant) -> Given {
    switch expression {
    case .userID:
      // A token's `sub` is a text (RFC 7519, section 4.1.2).
      return Given(text: expression.ruleText, valueClass: .text)
    case .found(let step, let value):
      guard case .lookup(let place, _) = grant.steps[step] else { break }
      let lookup = definition.lookups[place]
      let inner = lookup.values[value]
      return Given(
        text: "\(sources[lookup.source].name).\(inner.ruleText)", valueClass: inner.valueClass)
    default: break
    }
    return Given(text: expression.ruleText, valueClass: expression.valueClass)
  }

  private func mismatch(
    _ value: PlanExpression, of source: Int, _ given: Given
  ) -> Diagnostic? {
    let rowIsText = value.valueClass == .text
    let rowIsNumber = value.valueClass == .integer || value.valueClass == .real
    let givenIsText = given.valueClass == .text
    let givenIsNumber = given.valueClass == .integer || given.valueClass == .real
    guard rowIsText && givenIsNumber || rowIsNumber && givenIsText else { return nil }
    let row = "\(sources[source].name).\(value.ruleText)"
    let (text, number) = rowIsText ? (row, given.text) : (given.text, row)
    return .warning(
      .warnClass, "\(row) never equals \(given.text): \(number) is a number, \(text) is a text",
      remedy: "write CAST(\(rowIsText ? given.text : value.ruleText) AS text)", at: span)
  }

  // MARK: Products

  /// Steps of which none leads to the other give each with each.
  private func product(_ grant: PlanGrant) -> Diagnostic? {
    let used = Set(grant.outputs.flatMap { $0.flatMap(\.steps) })
    var reached: [Set<Int>] = []
    for step in grant.steps {
      var origin: Set<Int> = []
      if case .lookup(_, let key) = step {
        for before in key.flatMap(\.steps) { origin.formUnion(reached[before]) }
        origin.formUnion(key.flatMap(\.steps))
      }
      reached.append(origin)
    }
    let ends = used.filter { end in !used.contains { reached[$0].contains(end) } }.sorted()
    guard ends.count > 1 else { return nil }
    let names = ends.map { name(of: grant.steps[$0]) }.joined(separator: " with each of ")
    return .warning(
      .warnProduct, "a user has a bucket for each of \(names)",
      remedy: "leave it if both lists are short; else make two definitions of it", at: span)
  }

  private func name(of step: PlanGrant.Step) -> String {
    switch step {
    case .elements(let elements): "the elements of \(elements.value.ruleText)"
    case .lookup(let place, _): "his rows of \(sources[definition.lookups[place].source].name)"
    }
  }
}

extension PlanExpression {
  /// The step that the value comes from, if it stands alone.
  fileprivate var steps: [Int] {
    switch self {
    case .found(let step, _), .elementValue(let step), .elementKey(let step): [step]
    default: []
    }
  }
}
