/// What new rules change in the meaning of the old, definition by definition.
///
/// A requirement that is gone lets more through; one that is new lets less through. What cannot be told so
/// counts as letting more through, so that nothing that widens access goes unsaid.
package struct PlanComparison: Sendable, Equatable {
  package struct Change: Sendable, Equatable {
    package let text: String
    /// Whether somebody may get rows or columns that he did not get.
    package let widens: Bool
  }

  private let old: SyncPlan
  private let new: SyncPlan

  package init(from old: SyncPlan, to new: SyncPlan) {
    self.old = old
    self.new = new
  }

  /// What is different about the definition of this name; empty when it is the same, or in neither.
  package func changes(of name: String) -> [Change] {
    let before = old.definitions.first { $0.name == name }
    let after = new.definitions.first { $0.name == name }
    switch (before, after) {
    case (let before?, let after?): return changes(before, after)
    case (nil, let after?): return after.grants.map { added($0, of: after) }
    default: return []
    }
  }

  private func added(_ grant: PlanGrant, of definition: PlanDefinition) -> Change {
    let requirements = grant.requirements(in: definition, new)
    let values = grant.requestValues
    let isOpen = values.allSatisfy(\.isOfClient)
    let text =
      switch (values.isEmpty, isOpen) {
      case (true, _): "given to everybody"
      case (_, true): "given to everybody who asks: \(requirements.joined(separator: " and "))"
      default: "given where \(requirements.joined(separator: " and "))"
      }
    return Change(text: text, widens: true)
  }

  private func changes(_ before: PlanDefinition, _ after: PlanDefinition) -> [Change] {
    var changes: [Change] = []
    if before.priority != after.priority {
      changes.append(
        Change(text: "priority \(before.priority) becomes \(after.priority)", widens: false))
    }
    if before.stream?.isDefault != after.stream?.isDefault {
      let text = after.stream?.isDefault == true ? "comes without asking" : "comes on asking only"
      changes.append(Change(text: text, widens: after.stream?.isDefault == true))
    }
    if before.parameters != after.parameters {
      changes.append(
        Change(
          text: "bucket parameters (\(before.parameters.joined(separator: ", "))) become "
            + "(\(after.parameters.joined(separator: ", ")))", widens: true))
    }
    changes += compare(
      before.grants.map { $0.requirements(in: before, old) },
      after.grants.map { $0.requirements(in: after, new) }, what: "who gets it")
    changes += queries(before, after)
    return changes
  }

  // MARK: Queries

  private func queries(_ before: PlanDefinition, _ after: PlanDefinition) -> [Change] {
    var changes: [Change] = []
    var rest = before.queries
    for query in after.queries {
      let table = new.sources[query.source]
      let place = rest.firstIndex { other in
        other.outputName == query.outputName && old.sources[other.source].name == table.name
          && old.sources[other.source].schema == table.schema
      }
      guard let place else {
        changes.append(
          Change(text: "rows of \(table.name) come as \(query.outputName)", widens: true))
        continue
      }
      let other = rest.remove(at: place)
      changes += columns(other, query)
      changes += compare(
        other.branches.map { $0.requirements(of: before) },
        query.branches.map { $0.requirements(of: after) }, what: query.outputName)
    }
    changes += rest.map { query in
      Change(
        text: "rows of \(old.sources[query.source].name) no longer come as \(query.outputName)",
        widens: false)
    }
    return changes
  }

  private func columns(_ before: PlanQuery, _ after: PlanQuery) -> [Change] {
    let name = after.outputName
    var changes: [Change] = []
    for column in after.columns {
      guard let other = before.columns.first(where: { $0.name == column.name }) else {
        changes.append(Change(text: "\(name): column \(column.name) is new", widens: true))
        continue
      }
      if other.value != column.value {
        let text = column.value.ruleText
        let how = other.value.ruleText == text ? "has another type" : "is now \(text)"
        changes.append(Change(text: "\(name): column \(column.name) \(how)", widens: true))
      }
    }
    for column in before.columns where !after.columns.contains(where: { $0.name == column.name }) {
      changes.append(Change(text: "\(name): column \(column.name) is gone", widens: false))
    }
    return changes
  }

  // MARK: Requirements

  /// Compares alternatives, each a list of requirements: every new one with the old one that it is most like.
  private func compare(_ before: [[String]], _ after: [[String]], what: String) -> [Change] {
    var rest = before
    var changes: [Change] = []
    for requirements in after {
      let likeness = rest.map { Set($0).intersection(requirements).count }
      guard let place = likeness.indices.max(by: { likeness[$0] < likeness[$1] }) else {
        changes.append(
          Change(text: "\(what): also where \(Self.text(requirements))", widens: true))
        continue
      }
      let other = rest.remove(at: place)
      changes += other.filter { !requirements.contains($0) }.map {
        Change(text: "\(what): no longer requires \($0)", widens: true)
      }
      changes += requirements.filter { !other.contains($0) }.map {
        Change(text: "\(what): now requires \($0)", widens: false)
      }
    }
    changes += rest.map {
      Change(text: "\(what): no longer where \(Self.text($0))", widens: false)
    }
    return changes
  }

  private static func text(_ requirements: [String]) -> String {
    requirements.isEmpty ? "anything holds" : requirements.joined(separator: " and ")
  }
}

extension PlanBranch {
  /// What a row has to fulfil, in the rules' language.
  fileprivate func requirements(of definition: PlanDefinition) -> [String] {
    let matches = zip(definition.parameters, parts).flatMap { name, values in
      values.map { "\(text(of: $0)) = bucket.\(name)" }
    }
    return matches + conditions.flatMap(\.conjuncts).map(\.ruleText)
  }
}

extension PlanGrant {
  /// What a request has to fulfil, in the rules' language.
  fileprivate func requirements(in definition: PlanDefinition, _ plan: SyncPlan) -> [String] {
    var texts = conditions.flatMap(\.conjuncts).map(\.ruleText)
    for case .lookup(let place, let key) in steps {
      let lookup = definition.lookups[place]
      let table = plan.sources[lookup.source].name
      let ways = lookup.branches.map { branch in
        zip(branch.parts, key).flatMap { part, value in
          part.map {
            "\(table).\(branch.text(of: $0)) = \(text(of: value, in: definition, plan))"
          }
        } + branch.conditions.flatMap(\.conjuncts).map { "\($0.ruleText) in \(table)" }
      }
      if ways.count == 1 {
        texts += ways[0]
      } else {
        texts.append(ways.map { $0.joined(separator: " and ") }.joined(separator: " or "))
      }
    }
    for (name, values) in zip(definition.parameters, outputs) {
      texts += values.map { "bucket.\(name) = \(text(of: $0, in: definition, plan))" }
    }
    return texts
  }

  /// The values of requests that it reads.
  fileprivate var requestValues: [PlanExpression] {
    let read = steps.flatMap { step in
      switch step {
      case .elements(let elements): [elements.value]
      case .lookup(_, let key): key
      }
    }
    return (conditions + read + outputs.flatMap(\.self)).flatMap(\.requestValues)
  }
}

extension PlanExpression {
  /// Whether a client says it of itself, unlike what stands in its token.
  fileprivate var isOfClient: Bool {
    switch self {
    case .parameters, .userParameter, .subscription: true
    case .member(let operand, _, _, _): operand.isOfClient
    default: false
    }
  }
}
