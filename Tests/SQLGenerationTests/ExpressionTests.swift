import Foundation
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// Scalar expressions with results that the language's reference documents.
@Suite struct ExpressionTests {
  /// An expression and the JSON of its value.
  static let expected: [(expression: String, json: String)] = [
    // NULL counts as false, and NOT NULL is true.
    ("NOT NULL", "1"), ("NULL AND 1", "0"), ("NULL OR 1", "1"), ("NOT (NULL = 1)", "1"),
    ("NULL = NULL", "null"), ("1 != NULL", "null"), ("NULL IS NULL", "1"),
    // No class is converted to another for a comparison.
    ("'1' = 1", "0"), ("5 < '1'", "1"), ("'5' > 4", "1"), ("1 = 1.0", "1"),
    ("9007199254740993 = 9007199254740992.0", "0"), ("'b' > 'B'", "1"), ("'a' < 'ä'", "1"),
    // The truth of a text is its leading integer.
    ("NOT '1x'", "0"), ("NOT ' 1'", "0"), ("NOT '-1'", "0"), ("NOT 'abc'", "1"),
    ("NOT '0.9'", "1"), ("NOT ''", "1"), ("NOT 'true'", "1"), ("NOT true", "0"), ("NOT 0.5", "0"),
    // Arithmetic.
    ("7 / 2", "3"), ("-7 / 2", "-3"), ("7 / 2.0", "3.5"), ("7 / 0", "null"), ("1.0 / 0", "null"),
    ("'12abc' + 1", "13"), ("'abc' + 1", "1"), ("'1.5' + 1", "2.5"), ("NULL + 1", "null"),
    ("9223372036854775807 + 1", "9223372036854775808"), ("2 * 3 + 4", "10"),
    ("1 || 2.0 || 'x'", #""12x""#), ("'a' || NULL", "null"),
    // Casts.
    ("CAST('1.9' AS integer)", "1"), ("CAST('1e3' AS integer)", "1"),
    ("CAST('0x10' AS integer)", "0"), ("CAST(-1.5 AS integer)", "-2"),
    ("CAST('2.0' AS numeric)", "2.0"), ("CAST('2' AS numeric)", "2"), ("CAST('x' AS real)", "0.0"),
    ("CAST(1.0 AS text)", #""1""#), ("CAST(' 12 ' AS integer)", "12"),
    ("hex(CAST(1.0 AS blob))", #""31""#), ("CAST('1e3' AS real)", "1000.0"),
    // Functions.
    ("upper('straße')", #""STRASSE""#), ("lower('ÀB')", #""àb""#), ("upper(NULL)", "null"),
    ("length('🚤')", "2"), ("length(10.0)", "2"), ("length(NULL)", "null"),
    ("substring('abc', -10, 5)", #""abc""#), ("substring('abcdef', 2, 3)", #""bcd""#),
    ("substring('abc', 0, 2)", #""a""#), ("substring('abc', 9)", #""""#),
    ("substring('abcdef', 4, -2)", #""bc""#), ("substring('abc', 2.9)", #""bc""#),
    ("substring('abc', 1, NULL)", "null"), ("substring('a🚤b', 4)", #""b""#),
    ("hex(255)", #""323535""#), ("hex(NULL)", #""""#), ("base64('harbour')", #""aGFyYm91cg==""#),
    ("typeof(NULL)", #""null""#), ("typeof(1)", #""integer""#), ("typeof(1.0)", #""real""#),
    ("typeof('{\"a\":2.0}' ->> 'a')", #""real""#), ("typeof('[7]' ->> '0')", #""integer""#),
    ("ifnull(NULL, 2)", "2"), ("iif(NULL, 'a', 'b')", #""b""#), ("iif('1', 1, 'b')", "1"),
    ("instr('harbour', 'bo')", "4"), ("instr('🚤x', 'x')", "3"), ("instr('a', '')", "1"),
    (
      "hex(uuid_blob('5f0c1de2-7c1e-4b55-9d0e-2b7f3a61c001'))",
      #""5F0C1DE27C1E4B559D0E2B7F3A61C001""#
    ),
    // JSON.
    (#"'{"a":{"b":[1,2.5]}}' ->> '$.a.b.1'"#, "2.5"), (#"'{"a.b":1}' ->> 'a.b'"#, "1"),
    (#"'{"a":null}' ->> 'a'"#, "null"), (#"'{"a":null}' -> 'a'"#, #""null""#),
    (#"'{"a": [ 1, {"c" : 42.0} ]}' -> 'a'"#, ##""[1,{\"c\":42.0}]""##),
    (#"'{"a":true}' ->> 'a'"#, "1"), (#"'{"a":1e2}' ->> 'a'"#, "100.0"),
    (#"'[1,2]' ->> '-1'"#, "null"), (#"'[1,2]' ->> '01'"#, "null"), (#"'[1,2]' ->> '1'"#, "2"),
    (#"'{"-1":5}' ->> '-1'"#, "5"), (#"'{"a":1,"a":2}' ->> 'a'"#, "2"),
    (#"json_keys('{"b":1,"10":2,"2":3,"a":4}')"#, ##""[\"2\",\"10\",\"b\",\"a\"]""##),
    (#"json_valid('{"a":1,"a":2}')"#, "0"), ("json_valid('NaN')", "0"), ("json_valid(' 5 ')", "1"),
    (#"json_array_length('[1,[2]]')"#, "2"), (#"json_array_length('{"a":1}')"#, "0"),
    (#"json_array_length('{"a":[1]}', '$.a')"#, "1"), (#"json_array_length('{}', '$.a')"#, "null"),
    ("'1' IN '[1]'", "0"), ("1 IN '[1.0]'", "1"), ("1 IN '[true]'", "1"), ("2 IN NULL", "null"),
    ("NULL IN '[1]'", "null"),
    // Dates.
    ("unixepoch('2024-02-29T13:14:15Z')", "1709212455"),
    ("unixepoch('2024-02-29 13:14:15.678', 'subsec')", "1709212455.678"),
    ("unixepoch('2024-02-29T13:14:15+02:00')", "1709205255"),
    ("datetime(0, 'unixepoch')", #""1970-01-01 00:00:00""#),
    ("datetime(2440587.5)", #""1970-01-01 00:00:00""#),
    ("datetime('2024-02-29', 'subsec')", #""2024-02-29 00:00:00.000""#),
    ("datetime('2024-02-30')", "null"), ("datetime('now')", "null"),
    ("unixepoch(1.5, 'unixepoch')", "1"),
  ]

  @Test func `constant expressions have their documented values`() async throws {
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        "CREATE TABLE public.t (id int PRIMARY KEY, v text); INSERT INTO public.t VALUES (1, 'x')")
      for (expression, json) in Self.expected {
        let data = try await evaluate(expression, connection)
        #expect(data == [#"{"id":1,"v":\#(json)}"#], "\(expression)")
      }
    }
  }

  /// Texts that break parsers, number readers and stacks.
  private static let hostile = [
    "", " ", "x", "[", "{\"a\":", "[1,2", "null", "{\"a\":\"\\u0000\"}", "{\"a\":\"\\ud800\"}",
    "{\"a\":1e999999}", "{\"a\":1e-999999}", "1e999999", "-1e999999", "1e-999999", "0.0e1",
    String(repeating: "9", count: 200_000), "{\"a\":\(String(repeating: "9", count: 200_000))}",
    String(repeating: "[", count: 50_000),
    String(repeating: "[", count: 3000) + String(repeating: "]", count: 3000),
    String(repeating: "{\"a\":", count: 1500) + "1" + String(repeating: "}", count: 1500),
    "{\"a\":[\(String(repeating: "[", count: 2000))\(String(repeating: "]", count: 2000))]}",
    "99999999999-01-01", "2024-13-45", "2024-02-29T25:61:61+99:99", "infinity", "NaN", "-",
    "9999999999999999999999999999999999999999.5", "\u{F8FF}🚤", "e", ".", "+.e1", "0x10",
    "[null,true,{},[],1e400,\"a\"]", "{\"\":1}",
  ]

  @Test func `no value of a row stops an evaluation`() async throws {
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute("CREATE TABLE public.t (id int PRIMARY KEY, v text, j json)")
      for (number, text) in Self.hostile.enumerated() {
        _ = try await connection.query(
          "INSERT INTO public.t VALUES ($1, $2, NULL)",
          [.integer(Int64(number)), .text(text)])
      }
      try await connection.execute(
        #"INSERT INTO public.t VALUES (1000, NULL, '{"a":"\u0000","b":"\ud800","c":1e999}')"#)
      for expression in [
        "v ->> 'a'", "v -> 'a'", "v ->> '$.a.0'", "v ->> 'x.y'", "json_extract(v, '$')",
        "json_keys(v)", "json_valid(v)", "json_array_length(v)", "1 IN v", "v || v", "v + 1",
        "v * v", "v / v", "v - 1.5", "CAST(v AS integer)", "CAST(v AS real)",
        "CAST(v AS numeric)", "CAST(v AS numeric) * CAST(v AS numeric)",
        "CAST(CAST(v AS real) AS integer)",
        "NOT v", "v < 5", "CAST(v AS numeric) < CAST(v AS real)", "upper(v)", "substring(v, v, v)",
        "length(v)", "instr(v, v)", "unixepoch(v)", "datetime(v, 'unixepoch')", "datetime(v)",
        "unixepoch(CAST(v AS real))", "datetime(CAST(v AS numeric), 'unixepoch', 'subsec')",
        "hex(uuid_blob(v))", "iif(v, v, 1)", "typeof(v ->> 'a')", "(v ->> 'a') + 1",
        "(v ->> 'a') || 'x'", "(v ->> 'a') < 5", "j ->> 'a'", "j ->> 'b'", "j -> 'a'", "j ->> 'c'",
        "(j ->> 'c') * 2", "json_keys(j)", "j -> 'a' ->> 'b'", "1 IN j",
      ] {
        do {
          _ = try await evaluate(expression, connection)
        } catch let error as PostgresError {
          Issue.record("\(expression): \(error.message)")
        }
      }
    }
  }

  @Test func `real numbers at their limits neither fail nor become invalid JSON`() async throws {
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        """
        CREATE TABLE public.t (id int PRIMARY KEY, v float8);
        INSERT INTO public.t VALUES (1, 'NaN'), (2, 'Infinity'), (3, '-Infinity'),
          (4, 1.7976931348623157e308), (5, 5e-324), (6, -0.0), (7, 1e15), (8, 123456789012345680),
          (9, 1e-5), (10, 0.1), (11, 1e-7), (12, NULL);
        """)
      let type = CatalogType.builtIn("float8")
      #expect(
        try await evaluate("v", connection, type: type)
          == [
            "null", "null", "null", "1.7976931348623157e+308", "5e-324", "0.0",
            "1000000000000000.0", "123456789012345680.0", "0.00001", "0.1", "1e-7", "null",
          ].enumerated().map { #"{"id":\#($0.offset + 1),"v":\#($0.element)}"# })
      for expression in [
        "v * v", "v + v", "v - v", "v / v", "CAST(v AS integer)", "CAST(v AS text)",
        "v < 5", "v = 1", "v || 'x'", "iif(v, v, 'x')", "unixepoch(v)", "NOT v", "length(v)",
        "v * 1000000", "CAST(v AS integer) / 1000",
      ] {
        for data in try await evaluate(expression, connection, type: type) {
          #expect(
            (try? JSONSerialization.jsonObject(with: Data(data.utf8))) != nil,
            "\(expression): \(data)")
        }
      }
    }
  }

  /// The data of every row of `t` under `SELECT id, <expression> AS v FROM t` in edition 2.
  private func evaluate(
    _ expression: String, _ connection: PostgresConnection, type: CatalogType = .builtIn("text")
  ) async throws -> [String] {
    let query = CaseValue.quoted("SELECT id, \(expression) AS v FROM t")
    let (rules, read) = RulesReader.read(
      "config: {edition: 2}\nbucket_definitions:\n  b:\n    data:\n      - \(query)\n",
      fileName: "rules.yaml")
    let catalog = Catalog(tables: [
      CatalogTable(
        schema: "public", name: "t",
        columns: [
          CatalogColumn(name: "id", type: .builtIn("int4")), CatalogColumn(name: "v", type: type),
          CatalogColumn(name: "j", type: .builtIn("json")),
        ], key: ["id"])
    ])
    let (plan, compiled) = PlanCompiler.compile(try #require(rules), catalog)
    let compiledRules = SQLGenerator.compile(
      try #require(plan, "\(expression): \((read + compiled).map(\.message))"))
    let result = try await connection.query(
      "SELECT data FROM (\(compiledRules.definitions[0].queries[0].evaluationAll())) e "
        + "ORDER BY source_key::int")
    return (0..<result.rowCount).compactMap { result.string($0, 0) }
  }
}
