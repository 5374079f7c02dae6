import SyncRules
import Testing

@Suite struct RulesReaderTests {
  // MARK: YAML

  @Test("A key that is there twice is an error at the second") func duplicateKey() {
    expectFinding(
      .yamlSyntax,
      "bucket_definitions:\n  b:\n    data: [SELECT id FROM t]\n    ⟦data⟧: [SELECT id FROM t]\n")
  }

  @Test("Two definitions of one name are an error at the second") func duplicateDefinition() {
    expectFinding(
      .yamlSyntax,
      "bucket_definitions:\n  b:\n    data: [SELECT id FROM t]\n  ⟦b⟧:\n    data: []\n")
  }

  @Test("A misspelt key is an error that names the right one") func misspeltKey() {
    expectFinding(
      .unknownKey, "bucket_definitions:\n  b:\n    ⟦paramters⟧: SELECT\n    data: []\n")
    let (_, diagnostics) = RulesReader.read(
      "bucket_definitons:\n  b:\n    data: []\n", fileName: "rules.yaml")
    #expect(diagnostics.map(\.code) == [.missingDefinitions, .unknownKey])
    #expect(diagnostics.last?.remedy == "did you mean 'bucket_definitions'?")
  }

  @Test("A place where YAML ends is reported where it ends") func brokenYAML() {
    let (rules, diagnostics) = RulesReader.read("a: [1,\nb: {", fileName: "rules.yaml")
    #expect(rules == nil)
    #expect(diagnostics.map(\.code) == [.yamlSyntax])
  }

  @Test("An alias stands for the value it names") func alias() throws {
    let text = """
      bucket_definitions:
        a:
          data: &all
            - SELECT id FROM t
        b:
          data: *all
      """
    let (rules, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(diagnostics.isEmpty)
    #expect(try #require(rules).bucketDefinitions.map(\.data.count) == [1, 1])
  }

  @Test("Aliases that multiply are refused before they fill the memory") func aliasBomb() {
    var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in 1...12 {
      let items = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
      text += "a\(level): &a\(level) [\(items)]\n"
    }
    let (rules, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(rules == nil)
    #expect(diagnostics.map(\.code) == [.yamlSyntax])
  }

  @Test("Deep nesting is refused", arguments: ["[", "{a: ", "- "])
  func deepYAML(_ opening: String) {
    let text = String(repeating: opening, count: 5000)
    let (rules, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(rules == nil)
    #expect(diagnostics.map(\.code) == [.yamlSyntax])
  }

  @Test("A second document is an error") func secondDocument() {
    let (_, diagnostics) = RulesReader.read("a: 1\n---\nb: 2\n", fileName: "rules.yaml")
    #expect(diagnostics.map(\.code) == [.yamlSyntax])
  }

  @Test("An empty file is no mapping") func emptyFile() {
    let (rules, diagnostics) = RulesReader.read("# nothing\n", fileName: "rules.yaml")
    #expect(rules == nil)
    #expect(diagnostics.map(\.code) == [.yamlShape])
  }

  // MARK: Definitions

  @Test("A definition is read with all its keys") func definition() throws {
    let text = """
      config:
        edition: 2
        timestamp_max_precision: milliseconds
        fixed_json_extract: false
      bucket_definitions:
        lists: !accept_potentially_dangerous_queries
          priority: 1
          accept_potentially_dangerous_queries: true
          parameters: SELECT id AS list FROM lists WHERE owner = request.user_id()
          data:
            - SELECT * FROM lists WHERE id = bucket.list
            - SELECT id, name FROM items WHERE list_id = bucket.list
        shared:
          parameters:
            - SELECT list FROM a WHERE p = request.user_id()
            - SELECT list FROM b WHERE p = request.user_id()
          data: []
        everybody:
          data: [SELECT * FROM ports]
      """
    let (read, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(diagnostics.isEmpty)
    let rules = try #require(read)
    #expect(rules.edition == 2)
    #expect(rules.options.timestampMaxPrecision == .milliseconds)
    #expect(rules.options.timestampsISO8601)
    #expect(!rules.options.fixedJSONExtract)
    #expect(rules.bucketDefinitions.map(\.name) == ["lists", "shared", "everybody"])
    #expect(rules.bucketDefinitions.map(\.priority?.value) == [1, nil, nil])
    #expect(rules.bucketDefinitions.map(\.parameters?.count) == [1, 2, nil])
    #expect(rules.bucketDefinitions.map(\.data.count) == [2, 0, 1])
    #expect(rules.bucketDefinitions.map(\.acceptsDangerousQueries) == [true, false, false])
  }

  @Test("A stream of edition 3 is read with its named queries") func stream() throws {
    let text = """
      config: { edition: 3 }
      with:
        mine: SELECT team FROM members WHERE person = auth.user_id()
      streams:
        tasks:
          auto_subscribe: true
          priority: 2
          with:
            open: SELECT id FROM states WHERE open = 1
          queries:
            - SELECT * FROM tasks WHERE team IN mine AND state IN open
            - SELECT t.id FROM teams AS t JOIN members AS m ON m.team = t.id WHERE m.p = auth.user_id()
      """
    let (read, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(diagnostics.isEmpty)
    let stream = try #require(read?.streams.first)
    #expect(read?.sharedQueries.map(\.name) == ["mine"])
    #expect(stream.namedQueries.map(\.name) == ["open"])
    #expect(stream.queries.count == 2)
    #expect(stream.autoSubscribe)
    #expect(stream.priority?.value == 2)
  }

  @Test("All errors of a file are reported, in its order") func allErrors() {
    let text = """
      bucket_definitions:
        a:
          priority: 9
          data:
            - SELECT id FROM t WHERE a BETWEEN 1 AND 2 AND b LIKE 'x' LIMIT 1
            - SELECT count(id) AS n FROM t
        b:
          parameters: SELECT request.user() AS me
          data: SELECT id FROM t
        c:
          extra: 1
      """
    let (rules, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(rules != nil)
    #expect(
      diagnostics.map(\.code) == [
        .badPriority, .unsupportedOperator, .unsupportedOperator, .clause, .unknownFunction,
        .unknownFunction, .yamlShape, .missingKey,
        .unknownKey,
      ])
  }

  @Test(
    "An option that does not fit is refused",
    arguments: [
      "timestamps_iso8601: 1", "timestamp_max_precision: days", "storage_version: 77",
      "unstable_sqlite_expression_engine: true", "versioned_bucket_ids: yes please",
    ])
  func badOption(_ option: String) {
    let text = "config:\n  edition: 2\n  \(option)\nbucket_definitions:\n  a:\n    data: []\n"
    let (_, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(diagnostics.map(\.code) == [.badOption])
  }

  @Test("The unstable storage version is a warning") func storage() {
    let text =
      "config:\n  edition: 2\n  storage_version: 3\nbucket_definitions:\n  a:\n    data: []\n"
    let (_, diagnostics) = RulesReader.read(text, fileName: "rules.yaml")
    #expect(diagnostics.map(\.code) == [.warnStorage])
  }

  @Test("Two payloads of an event cannot read one table") func events() {
    expectFinding(
      .singleTable,
      """
      bucket_definitions:
        a:
          data: []
      event_definitions:
        e:
          payloads:
            - SELECT user_id FROM w
            - SELECT client_id FROM ⟦public.w⟧
      """)
  }
}
