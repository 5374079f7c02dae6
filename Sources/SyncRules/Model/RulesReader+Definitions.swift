extension RulesReader {
  private static let bucketKeys = [
    "parameters", "data", "priority", "accept_potentially_dangerous_queries",
  ]
  private static let streamKeys = [
    "query", "queries", "with", "auto_subscribe", "priority",
    "accept_potentially_dangerous_queries",
  ]

  // MARK: Bucket definitions

  mutating func bucketDefinitions(_ node: YAMLNode) -> [BucketDefinition] {
    guard let mapping = yaml.openMapping(node, "'bucket_definitions'") else { return [] }
    return mapping.entries.compactMap { bucketDefinition($0) }
  }

  private mutating func bucketDefinition(_ entry: YAMLEntry) -> BucketDefinition? {
    checkName(entry)
    guard let mapping = yaml.mapping(entry.value, "a bucket definition", keys: Self.bucketKeys)
    else { return nil }
    if mapping["data"] == nil {
      refuse(
        .missingKey, "the definition '\(entry.key)' has no 'data'",
        remedy: "add a 'data:' list of SELECTs", at: entry.keySpan)
    }
    return BucketDefinition(
      name: entry.key, nameSpan: entry.keySpan, priority: priority(mapping),
      parameters: mapping["parameters"].map { parameters($0) },
      data: mapping["data"].map { queries($0, "data", .bucketData) } ?? [],
      acceptsDangerousQueries: acceptsDangerous(mapping))
  }

  /// One SELECT or a list of them.
  private mutating func parameters(_ node: YAMLNode) -> [RuleQuery] {
    switch node.kind {
    case .scalar:
      return query(node, "'parameters'", .bucketParameters).map { [$0] } ?? []
    case .sequence(let items):
      if items.isEmpty {
        refuse(
          .yamlShape, "'parameters' is empty, so no client would get a bucket",
          remedy: "remove the key for one bucket that every client gets", at: node.span)
      }
      return queries(node, "parameters", .bucketParameters)
    case .mapping:
      refuse(
        .yamlShape, "'parameters' must be a SELECT or a list of them, not a mapping",
        at: node.span)
      return []
    }
  }

  private mutating func priority(_ mapping: YAMLMapping) -> Located<Int>? {
    guard let node = mapping["priority"] else { return nil }
    return yaml.integer(node, "'priority'", in: 0...3, code: .badPriority).map {
      Located($0, span: node.span)
    }
  }

  private mutating func acceptsDangerous(_ mapping: YAMLMapping) -> Bool {
    let key = "accept_potentially_dangerous_queries"
    return mapping[key].flatMap { yaml.boolean($0, "'\(key)'") } ?? false
  }

  private mutating func checkName(_ entry: YAMLEntry) {
    if entry.key.isEmpty {
      refuse(.yamlShape, "a definition needs a name", at: entry.keySpan)
    }
  }

  // MARK: Streams

  mutating func streamDefinitions(_ node: YAMLNode) -> [StreamDefinition] {
    guard let mapping = yaml.openMapping(node, "'streams'") else { return [] }
    return mapping.entries.compactMap { streamDefinition($0) }
  }

  private mutating func streamDefinition(_ entry: YAMLEntry) -> StreamDefinition? {
    checkName(entry)
    guard let mapping = yaml.mapping(entry.value, "a stream", keys: Self.streamKeys) else {
      return nil
    }
    checkStreamKeys(mapping, entry)
    let dialect = edition == 3 ? QueryDialect.stream : .alphaStream
    var queries: [RuleQuery] = []
    if let node = mapping["query"], let query = query(node, "'query'", dialect) {
      queries.append(query)
    }
    if edition == 3, let node = mapping["queries"] {
      queries += self.queries(node, "queries", dialect)
    }
    return StreamDefinition(
      name: entry.key, nameSpan: entry.keySpan, priority: priority(mapping),
      namedQueries: edition == 3 ? mapping["with"].map { namedQueries($0) } ?? [] : [],
      queries: queries,
      autoSubscribe: mapping["auto_subscribe"].flatMap { yaml.boolean($0, "'auto_subscribe'") }
        ?? false,
      acceptsDangerousQueries: acceptsDangerous(mapping))
  }

  private mutating func checkStreamKeys(_ mapping: YAMLMapping, _ entry: YAMLEntry) {
    let query = mapping.entry("query")
    let queries = mapping.entry("queries")
    guard edition == 3 else {
      for entry in [queries, mapping.entry("with")].compactMap({ $0 }) {
        refuse(
          .needsEdition3, "'\(entry.key)' needs edition 3", remedy: "set 'edition: 3'",
          at: entry.keySpan)
      }
      if query == nil, queries == nil {
        refuse(.missingKey, "the stream '\(entry.key)' has no 'query'", at: entry.keySpan)
      }
      return
    }
    if query == nil, queries == nil {
      refuse(
        .queryXorQueries, "the stream '\(entry.key)' has no query",
        remedy: "add 'query:' with one SELECT or 'queries:' with a list", at: entry.keySpan)
    }
    if query != nil, let queries {
      refuse(
        .queryXorQueries, "a stream has either 'query' or 'queries', not both",
        remedy: "move the query into the list", at: queries.keySpan)
    }
  }

  mutating func namedQueries(_ node: YAMLNode) -> [NamedQuery] {
    guard let mapping = yaml.openMapping(node, "'with'") else { return [] }
    return mapping.entries.compactMap { entry in
      query(entry.value, "a query of 'with'", .stream).map {
        NamedQuery(name: entry.key, nameSpan: entry.keySpan, query: $0)
      }
    }
  }

  // MARK: Events

  mutating func eventDefinitions(_ node: YAMLNode) -> [EventDefinition] {
    guard let mapping = yaml.openMapping(node, "'event_definitions'") else { return [] }
    return mapping.entries.compactMap { eventDefinition($0) }
  }

  private mutating func eventDefinition(_ entry: YAMLEntry) -> EventDefinition? {
    guard let mapping = yaml.mapping(entry.value, "an event definition", keys: ["payloads"]) else {
      return nil
    }
    guard let node = mapping["payloads"] else {
      refuse(
        .missingKey, "the event '\(entry.key)' has no 'payloads'",
        remedy: "add a 'payloads:' list of SELECTs", at: entry.keySpan)
      return nil
    }
    let payloads = queries(node, "payloads", .eventPayload)
    checkPayloadTables(payloads)
    return EventDefinition(name: entry.key, nameSpan: entry.keySpan, payloads: payloads)
  }

  private mutating func checkPayloadTables(_ payloads: [RuleQuery]) {
    var seen: Set<[String]> = []
    for payload in payloads {
      guard case .table(let table)? = payload.select?.from.first?.source else { continue }
      let name = [table.schemaName ?? "public", table.name.name]
      if !seen.insert(name).inserted {
        refuse(
          .singleTable,
          "another payload of this event reads the table '\(table.name.name)' already",
          remedy: "each payload reads a table of its own", at: table.span)
      }
    }
  }
}
