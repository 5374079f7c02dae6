import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// One published case: rules, source rows, and what each row and each request must give.
///
/// In the cases a column may hold a number in one row and a text in the next, which no PostgreSQL
/// table does. So each row gets a table of its own, with the types that carry its values, and the
/// rules are compiled for it.
struct RuleCase {
  let content: CaseValue

  var id: String { content["id"]?.string ?? "" }
  var topic: String { content["topic"]?.string ?? "" }

  struct Row: Hashable, CustomStringConvertible {
    var bucket: String
    var table: String
    var id: String
    var wire: String

    var description: String { "\(bucket) \(table) \(id) \(wire)" }
  }

  private struct Table {
    var schema: String
    var name: String
    var rows: [CaseValue]

    /// The types that carry the values of this row; a NULL has the type of the column elsewhere.
    func columns(_ row: CaseValue) -> [(name: String, type: String)] {
      row.members.map { name, value in
        let others = rows.compactMap { $0[name] }
        return (name, Self.type(value) ?? others.lazy.compactMap(Self.type).first ?? "text")
      }
    }

    private static func type(_ value: CaseValue) -> String? {
      switch value {
      case .null: nil
      case .number: "int8"
      case .object where value["int"] != nil: "int8"
      case .object where value["real"] != nil: "float8"
      case .object: "bytea"
      default: "text"
      }
    }

    func catalog(_ row: CaseValue) -> CatalogTable {
      var columns = columns(row).map {
        CatalogColumn(name: $0.name, type: .builtIn($0.type))
      }
      columns.append(CatalogColumn(name: "_key", type: .builtIn("int4"), notNull: true))
      return CatalogTable(schema: schema, name: name, columns: columns, key: ["_key"])
    }

    func script(_ row: CaseValue, number: Int) -> String {
      let table = SQLIdentifier(schema: schema, name: name)
      var definitions = columns(row).map { "\(SQLIdentifier($0.name)) \($0.type)" }
      definitions.append("\"_key\" int PRIMARY KEY")
      let values = row.members.map { Self.literal($0.value) } + ["\(number)"]
      return """
        CREATE SCHEMA IF NOT EXISTS \(SQLIdentifier(schema));
        DROP TABLE IF EXISTS \(table);
        CREATE TABLE \(table) (\(definitions.joined(separator: ", ")));
        INSERT INTO \(table) VALUES (\(values.joined(separator: ", ")));
        """
    }

    private static func literal(_ value: CaseValue) -> String {
      switch value {
      case .null: "NULL"
      case .number(let digits): digits
      case .string(let text): SQLLiteral(text).description
      default:
        if let blob = value["blob"]?.string {
          "decode('\(blob)', 'hex')"
        } else {
          "'\((value["int"] ?? value["real"])?.string ?? "")'"
        }
      }
    }
  }

  private var tables: [Table] {
    (content["tables"]?.members ?? []).map { name, rows in
      let parts = name.split(separator: ".").map(String.init)
      return Table(schema: parts[0], name: parts[1], rows: rows.elements)
    }
  }

  /// The rules compiled for a catalog in which one table has the types of one of its rows.
  private func compile(
    _ table: Table? = nil, _ row: CaseValue? = nil
  ) throws -> (rules: CompiledRules, diagnostics: [Diagnostic]) {
    let catalog = Catalog(
      tables: tables.map { other in
        if let table, let row, other.name == table.name, other.schema == table.schema {
          return other.catalog(row)
        }
        return other.catalog(other.rows.first ?? .object([]))
      })
    let (ruleSet, read) = RulesReader.read(content["rules"]?.string ?? "", fileName: "rules.yaml")
    let (plan, compiled) = PlanCompiler.compile(try #require(ruleSet), catalog)
    let diagnostics = read + compiled
    for error in diagnostics where error.severity == .error {
      Issue.record("\(id): \(error.code.rawValue) \(error.message)")
    }
    return (SQLGenerator.compile(try #require(plan)), diagnostics)
  }

  /// Streams name their buckets as they like, so their contents are compared.
  private var isStream: Bool { topic.hasPrefix("streams") }

  /// Evaluates every row and every request, and compares. Without `comparingBuckets`, requests are
  /// compared by the rows they see.
  func check(
    _ connection: PostgresConnection, skippingRows skipped: Set<Int> = [],
    comparingBuckets: Bool = true
  ) async throws {
    try await connection.execute("TRUNCATE sluice.parameters")
    let (base, diagnostics) = try compile()
    let expectedCodes = (content["expect"]?["diagnostics"]?.elements ?? []).map {
      "RULES_" + ($0["class"]?.string ?? "")
    }
    for code in expectedCodes {
      #expect(diagnostics.contains { $0.code.rawValue == code }, "\(id): \(code)")
    }
    var actualBuckets = BucketContents()
    var expectedBuckets = BucketContents()
    for table in tables {
      for (index, row) in table.rows.enumerated() {
        try await connection.execute(table.script(row, number: index))
        let rules = try compile(table, row).rules
        let actual = try await evaluate(rules, table, connection)
        try await materialise(rules, table, connection)
        if skipped.contains(index) { continue }
        let expected = expectedRows("\(table.schema).\(table.name)", index)
        let place = "\(table.schema).\(table.name) \(index)"
        actualBuckets.add(actual, at: place)
        expectedBuckets.add(expected, at: place)
        if !isStream {
          #expect(actual == expected, "\(id): row \(index) of \(table.name)")
        }
        try await connection.execute(
          "DROP TABLE \(SQLIdentifier(schema: table.schema, name: table.name))")
      }
    }
    if isStream {
      if comparingBuckets { #expect(actualBuckets.partition == expectedBuckets.partition, "\(id)") }
      try await checkSubscriptions(
        base, actualBuckets, expectedBuckets, comparingBuckets: comparingBuckets, connection)
    } else {
      try await checkRequests(base, connection)
    }
  }

  private func expectedRows(_ table: String, _ index: Int) -> Set<Row> {
    let entry = content["expect"]?["rows"]?.elements.first {
      $0["table"]?.string == table && $0["index"]?.number == index
    }
    return Set(
      (entry?["out"]?.elements ?? []).map { out in
        Row(
          bucket: out["bucket"]?.string ?? "", table: out["table"]?.string ?? "",
          id: out["id"]?.string ?? "", wire: out["wire"]?.string ?? "")
      })
  }

  /// Edition 3's `*` takes the column that every table has for the test's sake.
  private func withoutKey(_ wire: String) -> String {
    isStream ? wire.replacing(#/,"_key":\d+/#, with: "") : wire
  }

  /// The entries of the table, by every way of evaluating.
  private func evaluate(
    _ rules: CompiledRules, _ table: Table, _ connection: PostgresConnection
  ) async throws -> Set<Row> {
    var entries: Set<Row> = []
    for definition in rules.definitions {
      for query in definition.queries
      where query.source.name == table.name && query.source.schema == table.schema {
        let all = try await connection.query(query.evaluationAll())
        let keys = query.source.key.page(
          schema: table.schema, table: table.name, after: nil, limit: "100")
        let dirty = try await connection.query(query.evaluation(dirty: "(\(keys))"))
        let page = query.source.key.page(
          of: query.columns, schema: table.schema, table: table.name, after: nil, limit: "100")
        let rows = try await connection.query(query.evaluation(rows: "(\(page))"))
        var found: [Set<Row>] = []
        for result in [all, dirty, rows] {
          found.append(
            Set(
              (0..<result.rowCount).map { row in
                Row(
                  bucket: definition.name + (result.string(row, 1) ?? "?"),
                  table: query.outputName, id: result.string(row, 2) ?? "?",
                  wire: withoutKey(result.string(row, 3) ?? "?"))
              }))
        }
        #expect(found[0] == found[1], "\(id): by key and whole")
        #expect(found[0] == found[2], "\(id): by page and whole")
        entries.formUnion(found[0])
      }
    }
    return entries
  }

  /// Puts what the lookups give for the table into `sluice.parameters`.
  private func materialise(
    _ rules: CompiledRules, _ table: Table, _ connection: PostgresConnection
  ) async throws {
    for (number, definition) in rules.definitions.enumerated() {
      for lookup in definition.lookups
      where lookup.source.name == table.name && lookup.source.schema == table.schema {
        _ = try await connection.query(
          """
          INSERT INTO sluice.parameters (lookup, source_key, key, value)
          SELECT \(number * 100 + lookup.ordinal), e.* FROM (\(lookup.evaluationAll())) e
          """)
      }
    }
  }

  private func checkRequests(
    _ rules: CompiledRules, _ connection: PostgresConnection
  ) async throws {
    for (request, answer) in requests {
      let granted = try await self.granted(request, rules, connection).priorities
      #expect(granted == wanted(answer), "\(id): \(request.text)")
    }
  }

  private func checkSubscriptions(
    _ rules: CompiledRules, _ actual: BucketContents, _ expected: BucketContents,
    comparingBuckets: Bool, _ connection: PostgresConnection
  ) async throws {
    for (request, answer) in requests {
      let (priorities, faults) = try await granted(request, rules, connection)
      let wanted = wanted(answer)
      #expect(
        actual.visible(priorities) == expected.visible(wanted), "\(id): \(request.text)")
      if comparingBuckets {
        #expect(actual.held(priorities) == expected.held(wanted), "\(id): \(request.text)")
      }
      #expect(
        faults == answer["subscription_errors"]?.number ?? 0, "\(id): \(request.text)")
    }
  }

  private var requests: [(request: CaseValue, answer: CaseValue)] {
    let requests = content["requests"]?.elements ?? []
    let answers = content["expect"]?["requests"]?.elements ?? []
    return zip(requests, answers).map { ($0, $1) }
  }

  private func wanted(_ answer: CaseValue) -> [String: Int] {
    var wanted: [String: Int] = [:]
    for bucket in answer["buckets"]?.elements ?? [] {
      wanted[bucket["bucket"]?.string ?? ""] = bucket["priority"]?.number
    }
    return wanted
  }

  /// The buckets of a request with their priorities, and how many of its subscriptions failed.
  private func granted(
    _ request: CaseValue, _ rules: CompiledRules, _ connection: PostgresConnection
  ) async throws -> (priorities: [String: Int], faults: Int) {
    var granted: [String: Int] = [:]
    var faults: Set<Int64> = []
    for (number, definition) in rules.definitions.enumerated() {
      for grant in definition.grants {
        let result = try await connection.query(
          "WITH r AS (SELECT $1::text AS claims, $2::text AS parameters, $3::text AS subscriptions, "
            + "$4::boolean AS include_defaults) " + grant.sql { Int64(number * 100 + $0) },
          [
            .text(request["jwt"]?.text ?? "{}"),
            .text(request["client_params"]?.text ?? "{}"),
            .text(request["subscriptions"]?.text ?? "[]"),
            .text(request["include_defaults"]?.text ?? "true"),
          ])
        for row in 0..<result.rowCount {
          if result.string(row, 5) != nil {
            faults.insert(try #require(result.int(row, 4)))
          }
          guard let key = result.string(row, 0) else { continue }
          let priority = Int(try #require(result.int(row, 1)))
          granted[definition.name + key] = min(granted[definition.name + key] ?? 3, priority)
        }
      }
    }
    return (granted, faults.count)
  }
}

/// What is in each bucket, whatever the buckets are called.
private struct BucketContents {
  private var rows: [String: Set<String>] = [:]

  /// Adds the entries of the source row at `place`.
  mutating func add(_ entries: Set<RuleCase.Row>, at place: String) {
    for entry in entries {
      rows[entry.bucket, default: []].insert(
        "\(place): \(entry.table) \(entry.id) \(entry.wire)")
    }
  }

  /// The sets of rows that are in one bucket. Streams that hold the same rows may share one or not.
  var partition: Set<Set<String>> { Set(rows.values) }

  /// Every row of these buckets.
  func visible(_ buckets: [String: Int]) -> Set<String> {
    buckets.keys.reduce(into: []) { $0.formUnion(rows[$1] ?? []) }
  }

  /// The rows of each of these buckets with its priority; those without rows do not show.
  func held(_ buckets: [String: Int]) -> Set<String> {
    Set(
      buckets.compactMap { name, priority in
        rows[name].map { "\(priority) \($0.sorted())" }
      })
  }
}
