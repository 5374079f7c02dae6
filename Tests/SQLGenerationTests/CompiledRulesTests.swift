import Foundation
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

@Suite struct CompiledRulesTests {
  private static let catalog = Catalog(tables: [
    table("todos", ["id:uuid", "title:text", "list_id:uuid", "done:bool", "tags:jsonb"]),
    table("lists", ["id:uuid", "owner:text", "level:int4", "raw:text"]),
    table("log_2024", ["id:int8", "line:text"]),
    table("log_2025", ["id:int8", "line:text"]),
  ])

  private static func table(_ name: String, _ columns: [String]) -> CatalogTable {
    CatalogTable(
      schema: "public", name: name,
      columns: columns.map { column in
        let parts = column.split(separator: ":").map(String.init)
        return CatalogColumn(name: parts[0], type: .builtIn(parts[1]))
      }, key: ["id"])
  }

  private static func compile(
    _ yaml: String, _ catalog: Catalog = catalog
  ) throws -> CompiledRules {
    let (rules, read) = RulesReader.read(yaml, fileName: "rules.yaml")
    let (plan, compiled) = PlanCompiler.compile(try #require(rules), catalog)
    return SQLGenerator.compile(
      try #require(plan, "\((read + compiled).map { "\($0.code.rawValue) \($0.message)" })"))
  }

  private static let byList = """
    bucket_definitions:
      by_list:
        parameters: SELECT id AS list_id FROM lists WHERE owner = request.user_id()
        data:
          - SELECT id, title, done FROM todos WHERE list_id = bucket.list_id
          - SELECT * FROM lists WHERE id = bucket.list_id
    """

  @Test func `the schema names tables and columns with their classes, without id`() throws {
    let rules = try Self.compile(Self.byList)
    #expect(
      rules.schema == [
        PublishedTable(
          name: "lists",
          columns: [
            .init(name: "owner", type: "text"), .init(name: "level", type: "integer"),
            .init(name: "raw", type: "text"),
          ]),
        PublishedTable(
          name: "todos",
          columns: [.init(name: "title", type: "text"), .init(name: "done", type: "integer")]),
      ])
  }

  @Test func `compiled rules survive being written as JSON`() throws {
    let rules = try Self.compile(Self.byList)
    let data = try JSONEncoder().encode(rules)
    #expect(try JSONDecoder().decode(CompiledRules.self, from: data) == rules)
  }

  @Test func `hashes follow the meaning and nothing else`() throws {
    let rules = try Self.compile(Self.byList)
    let again = try Self.compile(
      Self.byList.replacing("SELECT id, title", with: "select  id , \"title\"")
        .replacing("bucket_definitions:", with: "# comment\nbucket_definitions:"))
    #expect(again == rules)
    // Another definition before it moves its tables' places, not its meaning.
    let moved = try Self.compile(
      Self.byList.replacing(
        "  by_list:", with: "  first:\n    data: [SELECT id FROM log_2024]\n  by_list:"))
    #expect(moved.definitions[1].contentHash == rules.definitions[0].contentHash)
    #expect(
      moved.definitions[1].queries.map(\.contentHash)
        == rules.definitions[0].queries.map(\.contentHash))
    let changed = try Self.compile(Self.byList.replacing("title, done", with: "title"))
    #expect(changed.definitions[0].contentHash != rules.definitions[0].contentHash)
    #expect(
      changed.definitions[0].queries[1].contentHash
        == rules.definitions[0].queries[1].contentHash)
    // A column's type is part of what a query means.
    var catalog = Self.catalog
    catalog.tables[0].columns[3].type = .builtIn("text")
    let retyped = try Self.compile(Self.byList, catalog)
    #expect(
      retyped.definitions[0].queries[0].contentHash
        != rules.definitions[0].queries[0].contentHash)
  }

  @Test func `a subkey is used where a bucket may hold a table's id twice`() throws {
    #expect(
      try Self.compile(Self.byList).definitions[0].queries.map(\.usesSubkey) == [false, false])
    let twice = try Self.compile(
      """
      bucket_definitions:
        all:
          data:
            - SELECT id, title FROM todos
            - SELECT id, owner FROM lists AS todos
            - SELECT owner AS id FROM lists
      """)
    #expect(twice.definitions[0].queries.map(\.usesSubkey) == [true, true, true])
  }

  @Test func `a wildcard stands for each table of its prefix`() throws {
    let rules = try Self.compile(
      """
      bucket_definitions:
        logs:
          data: ["SELECT id, line, _table_suffix AS year FROM \\"log_%\\""]
      """)
    #expect(rules.definitions[0].queries.map(\.outputName) == ["log_2024", "log_2025"])
    #expect(rules.tables.map(\.name) == ["log_2024", "log_2025"])
  }

  @Test func `a grant reports the keys it consulted, also those without a row`() async throws {
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      let rules = try Self.compile(Self.byList)
      try await connection.execute(
        """
        INSERT INTO sluice.parameters VALUES
          (41, '["ann"]', 'l1', '["x1"]'), (41, '["ann"]', 'l2', '["x2"]'),
          (42, '["bob"]', 'l3', '["x3"]');
        """)
      let sql =
        "WITH r AS (SELECT $1::text AS claims, $2::text AS parameters) "
        + rules.definitions[0].grants[0].sql { _ in 41 } + " ORDER BY 1"
      let ann = try await connection.query(sql, [#"{"sub":"ann"}"#, "{}"])
      #expect((0..<ann.rowCount).compactMap { ann.string($0, 0) } == [#"["x1"]"#, #"["x2"]"#])
      #expect((0..<ann.rowCount).compactMap { ann.int($0, 2) }.allSatisfy { $0 == 41 })
      #expect(Set((0..<ann.rowCount).compactMap { ann.string($0, 3) }) == [#"["ann"]"#])
      let bob = try await connection.query(sql, [#"{"sub":"bob"}"#, "{}"])
      #expect(bob.rowCount == 1)
      #expect(bob.isNull(0, 0))
      #expect(bob.string(0, 3) == #"["bob"]"#)
      // A request without the value consults nothing.
      let nobody = try await connection.query(sql, ["{}", "{}"])
      #expect(nobody.rowCount == 0)
    }
  }

  @Test func `names and texts of a rules file cannot leave their quotes`() async throws {
    let name = "a\"b'c\\d -- \n;"
    #expect("\(SQLIdentifier(schema: "s", name: name))" == "\"s\".\"a\"\"b'c\\d -- \n;\"")
    try await withDatabase { database in
      let connection = try await database.connect()
      let result = try await connection.query(
        "SELECT \(SQLLiteral(name)) AS \(SQLIdentifier(name))")
      #expect(result.string(0, 0) == name)
      #expect(result.columnNames == [name])
    }
  }
}
