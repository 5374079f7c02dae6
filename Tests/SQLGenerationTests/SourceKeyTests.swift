import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

@Suite struct SourceKeyTests {
  private static func key(_ columns: (name: String, type: CatalogType)...) throws -> SourceKey {
    try #require(SourceKey(columns.map { CatalogColumn(name: $0.name, type: $0.type) }))
  }

  /// A type, two values of it, and the key text of the first.
  private static let types: [(sql: String, type: CatalogType, values: [String], text: String)] = [
    ("int8", .builtIn("int8"), ["-5", "7"], "-5"),
    ("text", .builtIn("text"), ["a'\"\\b", "ä"], "a'\"\\b"),
    (
      "uuid", .builtIn("uuid"),
      ["5F0C1DE2-7C1E-4B55-9D0E-2B7F3A61C001", "6f0c1de2-7c1e-4b55-9d0e-2b7f3a61c001"],
      "5f0c1de2-7c1e-4b55-9d0e-2b7f3a61c001"
    ),
    ("numeric", .builtIn("numeric"), ["1.50", "2"], "1.50"),
    ("char(4)", .builtIn("bpchar"), ["ab", "cd"], "ab  "),
    ("date", .builtIn("date"), ["2024-02-29", "infinity"], "2024-02-29"),
    (
      "timestamptz", .builtIn("timestamptz"), ["2024-02-29 13:14:15.5+02", "infinity"],
      "2024-02-29T11:14:15.5"
    ),
    (
      "timestamp", .builtIn("timestamp"), ["2024-02-29 13:14:15.5", "0044-03-15 00:00 BC"],
      "2024-02-29T13:14:15.5"
    ),
    ("bytea", .builtIn("bytea"), ["\\x00ff", "\\x01"], "00ff"),
    (
      "public.tide", CatalogType(schema: "public", name: "tide", kind: .enumeration),
      ["low", "high"], "low"
    ),
  ]

  @Test func `a key's text is the same in every session and finds its row`() async throws {
    try await withDatabase { database in
      let plain = try await database.connect(settings: CompiledRules.sessionSettings)
      let odd = try await database.connect(settings: [
        "TimeZone": "Asia/Tokyo", "DateStyle": "German, DMY", "bytea_output": "escape",
        "extra_float_digits": "-10", "IntervalStyle": "iso_8601", "search_path": "hostile, public",
      ])
      // Operators and a type that would be taken if a name were left unqualified.
      try await plain.execute(
        """
        CREATE TYPE public.tide AS ENUM ('low', 'high');
        CREATE SCHEMA hostile;
        CREATE FUNCTION hostile.never(text, text) RETURNS boolean
          LANGUAGE sql AS 'SELECT false';
        CREATE OPERATOR hostile.= (LEFTARG = text, RIGHTARG = text, FUNCTION = hostile.never);
        CREATE DOMAIN hostile.text AS int;
        """)
      for (sql, type, values, text) in Self.types {
        let key = try Self.key(("k", type))
        try await plain.execute(
          """
          DROP TABLE IF EXISTS public.t;
          CREATE TABLE public.t (k \(sql) PRIMARY KEY);
          INSERT INTO public.t VALUES \(values.map { "(\(SQLLiteral($0)))" }.joined(separator: ","));
          """)
        let all = "SELECT \(key.text(of: "s")) FROM public.t s ORDER BY \(key.order(alias: "s"))"
        let texts = try await plain.query(all)
        let others = try await odd.query(all)
        #expect(texts.rowCount == values.count)
        for row in 0..<texts.rowCount {
          #expect(texts.string(row, 0) == others.string(row, 0), "\(sql)")
          for connection in [plain, odd] {
            let found = try await connection.query(
              "SELECT \(key.text(of: "s")) FROM public.t s "
                + "WHERE \(key.matches(alias: "s", keyText: "$1::pg_catalog.text"))",
              [PostgresValue(texts.string(row, 0))])
            #expect(found.rowCount == 1, "\(sql)")
            #expect(found.string(0, 0) == texts.string(row, 0), "\(sql)")
          }
        }
        #expect((0..<texts.rowCount).contains { texts.string($0, 0) == text }, "\(sql)")
      }
    }
  }

  @Test func `a composite key is one text, and pages walk it in order`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect(settings: CompiledRules.sessionSettings)
      try await connection.execute(
        """
        CREATE TABLE public.t (a text, b int, PRIMARY KEY (a, b));
        INSERT INTO public.t SELECT x, n FROM unnest(ARRAY['a,b', '"', 'NULL', '']) x,
          generate_series(1, 3) n;
        """)
      let key = try Self.key(("a", .builtIn("text")), ("b", .builtIn("int4")))
      var after: String?
      var seen: [String] = []
      repeat {
        let page = try await connection.query(
          key.page(
            schema: "public", table: "t", after: after == nil ? nil : "$1::text", limit: "5"),
          after.map { [.text($0)] } ?? [])
        guard page.rowCount > 0 else { break }
        let keys = (0..<page.rowCount).compactMap { page.string($0, 0) }
        seen += keys
        after = keys.last
      } while seen.count < 100
      #expect(seen.count == 12)
      #expect(Set(seen).count == 12)
      #expect(seen.contains("{NULL,1}") == false)
      #expect(seen.contains("{\"NULL\",1}"))
    }
  }

  @Test func `a changed spelling of an equal number is another key`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect(settings: CompiledRules.sessionSettings)
      try await connection.execute(
        "CREATE TABLE public.t (k numeric PRIMARY KEY); INSERT INTO public.t VALUES (1.00)")
      let key = try Self.key(("k", .builtIn("numeric")))
      for (text, count) in [("1.00", 1), ("1.0", 0)] {
        let found = try await connection.query(
          "SELECT 1 FROM public.t s WHERE \(key.matches(alias: "s", keyText: "$1::text"))",
          [.text(text)])
        #expect(found.rowCount == count)
      }
    }
  }

  @Test func `matching uses the index whatever the collation of the keys`() async throws {
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      try await connection.execute(
        """
        CREATE TABLE public.t (id text PRIMARY KEY);
        CREATE TABLE public.dirty (key text COLLATE "C");
        SET enable_seqscan = off;
        """)
      let table = CatalogTable(
        schema: "public", name: "t",
        columns: [CatalogColumn(name: "id", type: .builtIn("text"))], key: ["id"])
      let column = PlanExpression.column(name: "id", .text(plain: false))
      let rules = SQLGenerator.compile(
        .selecting([.init(name: "id", value: column)], from: table))
      let plan = try await connection.query(
        "EXPLAIN " + rules.definitions[0].queries[0].evaluation(dirty: "public.dirty"))
      let lines = (0..<plan.rowCount).compactMap { plan.string($0, 0) }
      #expect(lines.contains { $0.contains("Index Cond") }, "\(lines)")
    }
  }

  @Test func `keys without one text for all sessions are refused`() {
    for type in ["float8", "money", "interval", "jsonb"] {
      #expect(SourceKey([CatalogColumn(name: "k", type: .builtIn(type))]) == nil, "\(type)")
    }
    #expect(SourceKey([]) == nil)
  }
}
