/// Plans one branch of a stream's condition: how a request reaches keys, and which rows stand under them.
///
/// Keys are followed from the request outward. A table that something known is compared with is looked up
/// by it; tables that nothing leads to come last and are read whole. What the primary table's row is
/// compared with, when all is known, is the bucket.
struct BranchPlanner {
  struct Plan {
    var lookups: [PlanLookup] = []
    /// Without the stream's priority.
    var grant: PlanGrant
    var branch: PlanBranch
    /// The tables of which every row leads on, because nothing leads to them.
    var tablesReadWhole: [Int] = []
  }

  private struct Link {
    var left: TypedScalar
    var right: TypedScalar
  }

  /// A table that is looked up, at a step of the grant.
  private struct Draft {
    var table: Int
    var step: Int
    var parts: [PlanExpression] = []
    var values: [PlanExpression] = []
  }

  private let query: BoundQuery
  private var elements: [Int] = []
  private var scalars: [TypedScalar] = []
  private var links: [Link] = []
  private var unresolved: [Int] = []
  private var drafts: [Draft] = []
  private var steps: [PlanGrant.Step] = []

  init(_ terms: [StreamTerm], of query: BoundQuery) {
    self.query = query
    for term in terms {
      switch term {
      case .table(let number): if number != query.primary { unresolved.append(number) }
      case .elements(let number): elements.append(number)
      case .scalar(let scalar): scalars.append(scalar)
      case .link(let left, let right): links.append(Link(left: left, right: right))
      }
    }
    unresolved.sort()
  }

  /// `source` gives the place of a table among the plan's sources.
  mutating func plan(
    source: (Int) throws(Diagnostic) -> Int
  ) throws(Diagnostic) -> Plan {
    steps = elements(at: .request).map { .elements(planned($0)) }
    var pending = links.filter { !touches($0, .source(query.primary)) }
    while let table = next(pending) {
      unresolved.removeAll { $0 == table }
      let here = pending.filter { touches($0, .source(table)) && isKnown(other($0, than: table)) }
      pending.removeAll { touches($0, .source(table)) && isKnown(other($0, than: table)) }
      lookUp(table, by: here)
    }
    let places = places()
    let outputs = places.map { place in place.others.map { reached($0) } }
    var lookups: [PlanLookup] = []
    for draft in drafts {
      lookups.append(lookup(draft, source: try source(draft.table)))
    }
    let conditions = conditions(at: .request)
    return Plan(
      lookups: lookups,
      grant: PlanGrant(
        priority: BucketDefinition.defaultPriority, conditions: conditions, steps: steps,
        outputs: outputs),
      branch: PlanBranch(
        elements: elements(at: .source(query.primary)).map { planned($0) },
        parts: places.map { [$0.value] }, conditions: self.conditions(at: .source(query.primary))),
      tablesReadWhole: drafts.filter { $0.parts.isEmpty && !$0.values.isEmpty }.map(\.table))
  }

  /// Whether clients choose what they get: a value of theirs shapes the branch, and none of the token's
  /// takes part in what is looked up. A condition on the token counts only if no match is the client's.
  var isClientChosen: Bool {
    let matched = links.flatMap { [$0.left, $0.right] }
    if matched.contains(where: \.isAuthenticated) { return false }
    if matched.contains(where: \.isClientChosen) { return true }
    return scalars.contains(where: \.isClientChosen)
      && !scalars.contains(where: \.isAuthenticated)
  }

  // MARK: The order of lookups

  private func touches(_ link: Link, _ home: ValueHome) -> Bool {
    link.left.homes.contains(home) || link.right.homes.contains(home)
  }

  private func other(_ link: Link, than table: Int) -> TypedScalar {
    link.left.homes.contains(.source(table)) ? link.right : link.left
  }

  private func isKnown(_ scalar: TypedScalar) -> Bool {
    scalar.homes.allSatisfy { home in
      guard case .source(let table) = home else { return true }
      return drafts.contains { $0.table == table }
    }
  }

  private func next(_ pending: [Link]) -> Int? {
    unresolved.first { table in
      pending.contains { touches($0, .source(table)) && isKnown(other($0, than: table)) }
    } ?? unresolved.first
  }

  private mutating func lookUp(_ table: Int, by links: [Link]) {
    var pairs: [(part: PlanExpression, key: PlanExpression, order: String)] = []
    for link in links {
      let isLeft = link.left.homes.contains(.source(table))
      let part = local(isLeft ? link.left : link.right, at: .source(table))
      let key = reached(isLeft ? link.right : link.left)
      pairs.append((part, key, "\(part) \(key)"))
    }
    pairs.sort { $0.order < $1.order }
    drafts.append(Draft(table: table, step: steps.count, parts: pairs.map(\.part)))
    steps.append(.lookup(drafts.count - 1, key: pairs.map(\.key)))
  }

  /// A known value as the grant has it; one of a lookup's row becomes one of the lookup's values.
  private mutating func reached(_ scalar: TypedScalar) -> PlanExpression {
    guard case .source(let table)? = scalar.homes.first(where: { $0 != .request }),
      let index = drafts.firstIndex(where: { $0.table == table })
    else { return local(scalar, at: .request) }
    let value = local(scalar, at: .source(table))
    let place =
      drafts[index].values.firstIndex(of: value)
      ?? {
        drafts[index].values.append(value)
        return drafts[index].values.count - 1
      }()
    return .found(step: drafts[index].step, value: place)
  }

  private func lookup(_ draft: Draft, source: Int) -> PlanLookup {
    let home = ValueHome.source(draft.table)
    let areThere = draft.values.map { value -> PlanExpression in
      // A binary value matches nothing.
      value.valueClass == .blob ? .integer("0") : .isNull(value, negated: true)
    }
    return PlanLookup(
      source: source,
      branches: [
        PlanBranch(
          elements: elements(at: home).map { planned($0) }, parts: draft.parts.map { [$0] },
          conditions: conditions(at: home) + areThere)
      ], values: draft.values)
  }

  // MARK: The bucket's places

  private struct Place {
    var value: PlanExpression
    var others: [TypedScalar]
  }

  /// The primary row's values, each with what it must be equal to, in an order that does not depend on
  /// how the query is written: queries that reach the same keys share their buckets.
  private func places() -> [Place] {
    let primary = ValueHome.source(query.primary)
    var places: [Place] = []
    for link in links where touches(link, primary) {
      let isLeft = link.left.homes.contains(primary)
      let value = local(isLeft ? link.left : link.right, at: primary)
      let other = isLeft ? link.right : link.left
      if let index = places.firstIndex(where: { $0.value == value }) {
        places[index].others.append(other)
      } else {
        places.append(Place(value: value, others: [other]))
      }
    }
    let ordered = places.map { place in
      let others = place.others.map { ($0, order($0)) }.sorted { $0.1 < $1.1 }
      return (
        Place(value: place.value, others: others.map(\.0)),
        others.map(\.1).joined(separator: " ")
      )
    }
    return ordered.sorted { $0.1 < $1.1 }.map(\.0)
  }

  private func order(_ scalar: TypedScalar) -> String {
    guard case .source(let table)? = scalar.homes.first(where: { $0 != .request }) else {
      return "request \(local(scalar, at: .request))"
    }
    let step = drafts.first { $0.table == table }?.step ?? 0
    return "step \(step) \(local(scalar, at: .source(table)))"
  }

  // MARK: Values at home

  private func home(of scalar: TypedScalar) -> ValueHome? { scalar.homes.first }

  /// Conditions on values of a home. Constants hold for requests and for the primary table's rows.
  private func conditions(at home: ValueHome) -> [PlanExpression] {
    let takesConstants = home == .request || home == .source(query.primary)
    let found = scalars.filter { scalar in
      self.home(of: scalar).map { $0 == home } ?? takesConstants
    }.map { local($0, at: home) }
    var conditions: [PlanExpression] = []
    for condition in found.sorted(by: { "\($0)" < "\($1)" }) where condition != conditions.last {
      conditions.append(condition)
    }
    return conditions
  }

  private func elements(at home: ValueHome) -> [Int] {
    elements.filter { query.elements[$0].home == home }
  }

  private func planned(_ number: Int) -> PlanElements {
    PlanElements(query.elements[number].value.expression, takesObjects: true)
  }

  /// The expression with the elements numbered as they stand at its home.
  private func local(_ scalar: TypedScalar, at home: ValueHome) -> PlanExpression {
    guard !scalar.elements.isEmpty else { return scalar.expression }
    let numbers = elements(at: home)
    return scalar.expression.renumberingElements { numbers.firstIndex(of: $0) ?? 0 }
  }
}
