/// Compiles one stream: each way in which a request reaches keys is a definition of its own, and queries
/// that reach the same keys share it.
struct StreamCompiler {
  let stream: StreamDefinition
  var context: PlanCompiler

  private var definitions: [PlanDefinition] = []
  private var usedQueries: Set<String> = []
  private static let maximumDefinitions = 100
  /// How many choices of tables a query's wildcards may come to.
  private static let maximumPasses = 1000

  init(stream: StreamDefinition, context: PlanCompiler) {
    self.stream = stream
    self.context = context
  }

  /// The stream's plans, and which of the file's shared queries it uses.
  mutating func compile() -> (definitions: [PlanDefinition], usedQueries: Set<String>) {
    for query in stream.namedQueries { context.check(query) }
    for query in stream.queries {
      guard let select = query.select else { continue }
      do {
        try compile(select)
      } catch {
        context.report(error)
      }
    }
    for query in stream.namedQueries where !usedQueries.contains(query.name) {
      context.report(.unused(query))
    }
    let local = Set(stream.namedQueries.map(\.name))
    return (definitions, usedQueries.subtracting(local))
  }

  private var namedQueries: [NamedQuery] {
    let local = Set(stream.namedQueries.map(\.name))
    return stream.namedQueries
      + context.rules.sharedQueries.filter { !local.contains($0.name) }
  }

  private func binder(choices: [Int]) -> StreamBinder {
    StreamBinder(
      edition: context.rules.edition, namedQueries: namedQueries, choices: choices,
      context: context)
  }

  // MARK: Queries

  private mutating func compile(_ select: SelectStatement) throws(Diagnostic) {
    let first = try bind(select, choices: [])
    let counts = first.tables.map(\.candidates)
    var passes = 1
    for count in counts {
      passes *= count
      guard passes <= Self.maximumPasses else {
        throw .error(
          .tooManyTerms,
          "the wildcards stand for more than \(Self.maximumPasses) choices of tables",
          remedy: "name the tables", at: select.span)
      }
    }
    // By the table that the rows are of, and the branch of the condition: the plans of all choices.
    var plans: [Int: [[BranchPlanner.Plan]]] = [:]
    var queries: [Int: BoundQuery] = [:]
    for pass in 0..<passes {
      var rest = pass
      let choices = counts.map { count -> Int in
        defer { rest /= count }
        return rest % count
      }
      let query = pass == 0 ? first : try bind(select, choices: choices)
      let choice = choices[query.primary]
      queries[choice] = queries[choice] ?? query
      let found = try branches(of: query, at: select)
      let earlier = plans[choice] ?? found.map { _ in [] }
      plans[choice] = zip(earlier, found).map { $0 + ($1.map { [$0] } ?? []) }
    }
    for (choice, query) in queries.sorted(by: { $0.key < $1.key }) {
      for branch in plans[choice] ?? [] where !branch.isEmpty { try add(branch, of: query) }
    }
    guard definitions.count <= Self.maximumDefinitions else {
      throw .error(
        .tooManyTerms, "the stream has more than \(Self.maximumDefinitions) kinds of buckets",
        remedy: "divide it into several streams", at: select.span)
    }
  }

  private mutating func bind(
    _ select: SelectStatement, choices: [Int]
  ) throws(Diagnostic) -> BoundQuery {
    var binder = binder(choices: choices)
    defer {
      context = binder.context
      usedQueries.formUnion(binder.usedQueries)
    }
    let query = try binder.bind(select)
    if stream.autoSubscribe, binder.usesSubscription {
      binder.warn(
        .warning(
          .warnAutoParams,
          "clients have the stream without asking, and then the subscription has no parameters",
          remedy: "remove auto_subscribe, or use auth.parameter() or connection.parameter()",
          at: select.span))
    }
    return query
  }

  /// The plan of each branch; nil where there is no catalog, or no table of the name.
  private mutating func branches(
    of query: BoundQuery, at select: SelectStatement
  ) throws(Diagnostic) -> [BranchPlanner.Plan?] {
    let branches: [[StreamTerm]]
    do {
      branches = try NormalForm.branches(of: query.condition)
    } catch {
      throw .error(
        .tooManyTerms,
        "the condition has more than \(NormalForm.maximumBranches) alternatives when AND is "
          + "distributed over OR", remedy: "divide it into several queries",
        at: select.condition?.span ?? select.span)
    }
    var plans: [BranchPlanner.Plan?] = []
    for terms in branches {
      var planner = BranchPlanner(terms, of: query)
      if planner.isClientChosen, !stream.acceptsDangerousQueries {
        context.report(
          .warning(
            .warnDangerous, "any client may choose the rows of this query",
            remedy: "match a value of the token as well, "
              + "or set accept_potentially_dangerous_queries: true", at: select.span))
      }
      guard query.tables.allSatisfy({ $0.resolved.table != nil }) else {
        plans.append(nil)
        continue
      }
      let plan = try planner.plan { (number) throws(Diagnostic) in
        try source(of: query.tables[number])
      }
      for number in plan.tablesReadWhole { context.report(.readWhole(query.tables[number])) }
      plans.append(plan)
    }
    return plans
  }

  private mutating func source(of table: StreamTable) throws(Diagnostic) -> Int {
    guard let known = table.resolved.table else { return 0 }
    return try context.source(of: known, at: table.name.span)
  }

  // MARK: Definitions

  /// Adds a branch, whose plans differ in the tables that wildcards stand for.
  private mutating func add(
    _ plans: [BranchPlanner.Plan], of query: BoundQuery
  ) throws(Diagnostic) {
    var lookups: [PlanLookup] = []
    var grants: [PlanGrant] = []
    for plan in plans {
      var grant = plan.grant
      grant.priority = priority
      grant.steps = grant.steps.map { step in
        guard case .lookup(let number, let key) = step else { return step }
        let lookup = plan.lookups[number]
        let place =
          lookups.firstIndex(of: lookup)
          ?? {
            lookups.append(lookup)
            return lookups.count - 1
          }()
        return .lookup(place, key: key)
      }
      if !grants.contains(grant) { grants.append(grant) }
    }
    let table = query.tables[query.primary]
    let planned = PlanQuery(
      source: try source(of: table), outputName: table.outputName, columns: query.columns,
      branches: [plans[0].branch])
    guard
      let index = definitions.firstIndex(where: { $0.lookups == lookups && $0.grants == grants })
    else {
      definitions.append(
        PlanDefinition(
          name: "\(stream.name)|\(definitions.count)",
          stream: PlanStream(name: stream.name, isDefault: stream.autoSubscribe),
          priority: priority, parameters: plans[0].branch.parts.indices.map { "\($0 + 1)" },
          queries: [planned], lookups: lookups, grants: grants))
      return
    }
    definitions[index].add(planned)
  }

  /// Edition 2 reads the priority and does not apply it.
  private var priority: Int {
    let stated = context.rules.edition < 3 ? nil : stream.priority?.value
    return stated ?? BucketDefinition.defaultPriority
  }
}

extension PlanDefinition {
  /// Adds a query, or its branch to the one that differs in nothing else.
  fileprivate mutating func add(_ query: PlanQuery) {
    guard
      let index = queries.firstIndex(where: {
        $0.source == query.source && $0.outputName == query.outputName
          && $0.columns == query.columns
      })
    else {
      queries.append(query)
      return
    }
    for branch in query.branches where !queries[index].branches.contains(branch) {
      queries[index].branches.append(branch)
    }
  }
}

extension Diagnostic {
  fileprivate static func readWhole(_ table: StreamTable) -> Diagnostic {
    .warning(
      .warnReadWhole,
      "nothing of the request leads to \(table.name.name.name), so each client is led to all of it",
      remedy: "compare one of its columns with auth.user_id() or another value of the request",
      at: table.name.span)
  }

  static func unused(_ query: NamedQuery) -> Diagnostic {
    .warning(
      .warnUnusedQuery, "nothing uses the query '\(query.name)'", remedy: "remove it",
      at: query.nameSpan)
  }
}
