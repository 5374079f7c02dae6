import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// The published conversions, each through a real column of the type.
@Suite struct TypeConversionTests {
  @Test func `every published type becomes its published value`() async throws {
    let cases = try CaseValue.file("types.json")["types"]?.elements ?? []
    try #require(cases.count > 40)
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        """
        CREATE TYPE public.tide AS ENUM ('low', 'high');
        CREATE DOMAIN public.depth AS float8;
        """)
      for type in cases {
        let name = try #require(type["pg_type"]?.string)
        let text = try #require(type["pg_text"]?.string)
        for (edition, expected) in type.members where edition.hasPrefix("edition") {
          let actual = try await convert(
            text, type: name, options: options(edition), connection)
          #expect(actual == wire(expected), "\(name) \(text) in \(edition)")
        }
      }
    }
  }

  @Test func `structured types are JSON in edition 2 and raw text in edition 1`() async throws {
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        """
        CREATE TYPE public.tide AS ENUM ('low', 'high');
        CREATE TYPE public.berth AS (name text, "long" boolean, depth float8);
        """)
      let int4 = CatalogType.builtIn("int4")
      let tide = CatalogType(schema: "public", name: "tide", kind: .enumeration)
      let berth = CatalogType(
        schema: "public", name: "berth",
        kind: .composite([
          CatalogAttribute(name: "name", type: .builtIn("text")),
          CatalogAttribute(name: "long", type: .builtIn("bool")),
          CatalogAttribute(name: "depth", type: .builtIn("float8")),
        ]))
      let cases: [(String, CatalogType, String, String, String)] = [
        (
          "public.tide[]", CatalogType(name: "_tide", kind: .array(tide)), "{low,high}",
          "{low,high}", #"["low","high"]"#
        ),
        (
          "public.berth", berth, #"("A ""1""",t,4)"#, #"("A ""1""",t,4)"#,
          #"{"name":"A \"1\"","long":1,"depth":4.0}"#
        ),
        (
          "public.berth", berth, "(,,)", "(,,)", #"{"name":null,"long":null,"depth":null}"#
        ),
        (
          "int4range", CatalogType(name: "int4range", kind: .range(int4)), "[1,5)", "[1,5)",
          #"{"lower":1,"upper":5,"lower_exclusive":0,"upper_exclusive":1}"#
        ),
        (
          "int4range", CatalogType(name: "int4range", kind: .range(int4)), "(,5)", "(,5)",
          #"{"lower":null,"upper":5,"lower_exclusive":1,"upper_exclusive":1}"#
        ),
        (
          "int4range", CatalogType(name: "int4range", kind: .range(int4)), "empty", "empty",
          "empty"
        ),
        (
          "int4multirange", CatalogType(name: "int4multirange", kind: .multirange(int4)),
          "{[1,2),[4,6)}", "{[1,2),[4,6)}",
          #"[{"lower":1,"upper":2,"lower_exclusive":0,"upper_exclusive":1},"#
            + #"{"lower":4,"upper":6,"lower_exclusive":0,"upper_exclusive":1}]"#
        ),
        (
          "bool[]", CatalogType(name: "_bool", kind: .array(.builtIn("bool"))), "{{t},{f}}",
          "[[1],[0]]", "[[1],[0]]"
        ),
        (
          "timestamptz[]", CatalogType(name: "_timestamptz", kind: .array(.builtIn("timestamptz"))),
          "{2024-02-29 13:14:15+00,NULL}", #"["2024-02-29 13:14:15Z",null]"#,
          #"["2024-02-29T13:14:15.000000Z",null]"#
        ),
        (
          "json[]", CatalogType(name: "_json", kind: .array(.builtIn("json"))),
          #"{"{\"a\": 1}",NULL}"#, #"[{"a": 1},null]"#, #"[{"a": 1},null]"#
        ),
        ("int4[]", CatalogType(name: "_int4", kind: .array(int4)), "{}", "[]", "[]"),
      ]
      for (name, type, text, first, second) in cases {
        for (edition, expected) in [(1, first), (2, second)] {
          let actual = try await evaluate(
            text, sqlType: name, type: type, options: .defaults(edition: edition), connection)
          #expect(actual == CaseValue.quoted(expected), "\(name) \(text) in edition \(edition)")
        }
      }
    }
  }

  private func options(_ edition: String) -> RuleOptions {
    var options = RuleOptions.defaults(edition: edition == "edition1" ? 1 : 2)
    if edition.hasSuffix("_milliseconds") { options.timestampMaxPrecision = .milliseconds }
    if edition.hasSuffix("_seconds") { options.timestampMaxPrecision = .seconds }
    return options
  }

  private func convert(
    _ text: String, type name: String, options: RuleOptions, _ connection: PostgresConnection
  ) async throws -> String {
    let type: CatalogType
    var sqlType = name
    switch name {
    case "boolean": type = .builtIn("bool")
    case "enum tide(low,high)":
      type = CatalogType(schema: "public", name: "tide", kind: .enumeration)
      sqlType = "public.tide"
    case "domain depth AS float8":
      type = CatalogType(schema: "public", name: "depth", kind: .domain(.builtIn("float8")))
      sqlType = "public.depth"
    case _ where name.hasSuffix("[]"):
      let element = String(name.dropLast(2))
      type = CatalogType(name: "_" + element, kind: .array(.builtIn(element)))
    default: type = .builtIn(name)
    }
    return try await evaluate(
      text, sqlType: sqlType, type: type, options: options, connection)
  }

  private func evaluate(
    _ text: String, sqlType: String, type: CatalogType, options: RuleOptions,
    _ connection: PostgresConnection
  ) async throws -> String {
    try await connection.execute(
      """
      DROP TABLE IF EXISTS public.t;
      CREATE TABLE public.t (id int PRIMARY KEY, v \(sqlType));
      INSERT INTO public.t VALUES (1, \(SQLLiteral(text)));
      """)
    let table = CatalogTable(
      schema: "public", name: "t",
      columns: [
        CatalogColumn(name: "id", type: .builtIn("int4")), CatalogColumn(name: "v", type: type),
      ], key: ["id"])
    let conversion = ValueConversion(type, options: options)
    var value = PlanExpression.column(name: "v", conversion)
    // A binary value is seen through hex().
    if conversion == .blob { value = .call(.hex, [value]) }
    let rules = SQLGenerator.compile(.selecting([.init(name: "v", value: value)], from: table))
    let result = try await connection.query(rules.definitions[0].queries[0].evaluationAll())
    let data = try #require(result.string(0, 3))
    return String(data.dropFirst(#"{"v":"#.count).dropLast())
  }

  /// The wire text of a value of the published cases.
  private func wire(_ value: CaseValue) -> String {
    if let real = value["real"]?.string { return real }
    if let integer = value["int"]?.string { return integer }
    if let hex = value["blob"]?.string { return CaseValue.quoted(hex.uppercased()) }
    return value.text
  }
}
