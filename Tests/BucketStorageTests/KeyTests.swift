import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// Rows are told apart by the texts of their keys.
@Suite struct KeyTests {
  @Test func `a key that changes takes its row along`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        try await stage.app.execute("INSERT INTO todos VALUES (1, 1, 'a'), (2, 1, 'b')")
        try await stage.settle()
        try await stage.app.execute("UPDATE todos SET id = id + 10")
        try await stage.settle()
        let moved = try await stage.rows("1")
        #expect(moved.keys.sorted() == ["11", "12"])
        // Two rows exchange their keys in one transaction.
        try await stage.app.execute(
          "BEGIN; UPDATE todos SET id = 0 WHERE id = 11; UPDATE todos SET id = 11 WHERE id = 12; "
            + "UPDATE todos SET id = 12 WHERE id = 0; COMMIT")
        try await stage.settle()
        let swapped = try await stage.rows("1")
        #expect(swapped["11"]?.contains("\"b\"") == true)
        #expect(swapped["12"]?.contains("\"a\"") == true)
        try await stage.expectSound()
      }
    }
  }

  struct KeyCase: Sendable, CustomTestStringConvertible {
    let type: String
    let column: SourceKey.Column
    /// Four values; the second and third are equal but differ as texts, where the type has such.
    let values: [String]

    var testDescription: String { type }

    init(_ type: String, _ name: String, _ form: SourceKey.Form, _ values: [String]) {
      self.type = type
      column = TestRules.column("id", name, form)
      self.values = values
    }
  }

  static let cases = [
    KeyCase("int8", "int8", .exact, ["-5", "0", "7", "9223372036854775807"]),
    KeyCase(
      "uuid", "uuid", .exact,
      [
        "00000000-0000-0000-0000-00000000000a", "a0000000-0000-0000-0000-000000000000",
        "b0000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
      ]),
    KeyCase("text", "text", .exact, ["", "a'\"\\{},", "ß", "z"]),
    KeyCase("numeric", "numeric", .coarse, ["-1", "1.0", "1.00", "12345678901234567890.5"]),
    KeyCase("char(4)", "bpchar", .coarse, ["a", "b", "b ", "c"]),
    KeyCase(
      "timestamptz", "timestamptz", .instant,
      [
        "2026-03-29 01:30:00+01", "2026-10-25 02:30:00+02", "2026-10-25 02:30:00+01",
        "1999-12-31 23:59:59.999999Z",
      ]),
    KeyCase(
      "timestamp", "timestamp", .dateTime,
      ["2026-01-02 03:04:05", "2026-02-01 03:04:05", "infinity", "0044-03-15 00:00:00 BC"]),
    KeyCase("date", "date", .dateTime, ["2026-01-02", "2026-02-01", "infinity", "1900-01-01"]),
    KeyCase("bytea", "bytea", .bytes, ["\\x00", "\\x5c", "\\xff00", "\\x41"]),
  ]

  @Test(arguments: cases)
  func `keys of every type mean the same in every session`(_ key: KeyCase) async throws {
    let table = TestRules.table("things", key: [key.column])
    let rules = TestRules.rules([
      TestRules.definition(
        "all", table: table, bucket: "'[1]'", object: table.key.text(of: "s"),
        data: "json_build_object('n', s.n)::text", columns: ["id", "n"])
    ])
    try await withStage("CREATE TABLE things (id \(key.type) PRIMARY KEY, n int)", rules) { stage in
      try await stage.sequencing {
        let odd = try await stage.database.connect(settings: [
          "TimeZone": "Asia/Kathmandu", "DateStyle": "German, DMY", "bytea_output": "escape",
          "extra_float_digits": "-10", "IntervalStyle": "sql_standard",
          "search_path": "odd, public",
        ])
        try await odd.execute(
          "CREATE SCHEMA odd; CREATE FUNCTION odd.eq(int8, int4) RETURNS bool LANGUAGE sql AS 'SELECT false'; "
            + "CREATE OPERATOR odd.= (LEFTARG = int8, RIGHTARG = int4, FUNCTION = odd.eq); "
            + "CREATE FUNCTION odd.array_agg(text) RETURNS text[] LANGUAGE sql AS 'SELECT NULL::text[]'; "
            + "CREATE TABLE odd.sluice_new (id int)")
        let equal = key.column.form == .coarse
        for (index, value) in key.values.enumerated() where !(equal && index == 2) {
          _ = try await stage.app.query(
            "INSERT INTO things VALUES ($1::\(key.type), \(index))", [.text(value)])
        }
        try await stage.settle()
        let first = try await stage.rows("1")
        #expect(first.count == (equal ? 3 : 4))
        if equal {
          _ = try await odd.query(
            "UPDATE things SET id = $2::\(key.type) WHERE id = $1::\(key.type)",
            [.text(key.values[1]), .text(key.values[2])])
        }
        _ = try await odd.query("UPDATE things SET n = n + 100")
        _ = try await odd.query(
          "DELETE FROM things WHERE id = $1::\(key.type)", [.text(key.values[0])])
        try await stage.settle()
        let second = try await stage.rows("1")
        #expect(second.count == (equal ? 2 : 3))
        #expect(second.values.allSatisfy { $0.contains("10") })
        try await stage.expectSound()
        await odd.close()
      }
    }
  }

  @Test func `composite keys are followed`() async throws {
    let table = TestRules.table(
      "things",
      key: [TestRules.column("a", "text"), TestRules.column("b", "timestamptz", .instant)])
    let rules = TestRules.rules([
      TestRules.definition(
        "all", table: table, bucket: "'[1]'", object: "s.a || '/' || s.c",
        data: "json_build_object('c', s.c)::text", columns: ["a", "b", "c"])
    ])
    try await withStage(
      "CREATE TABLE things (a text, b timestamptz, c int NOT NULL, PRIMARY KEY (a, b)); "
        + "INSERT INTO things SELECT 'x,\"{' || i, now(), i FROM generate_series(1, 20) i", rules
    ) { stage in
      try await stage.sequencing {
        try await stage.app.execute(
          "SET TimeZone = 'America/New_York'; DELETE FROM things WHERE c > 10; UPDATE things SET c = c + 1, a = a || '\\'"
        )
        try await stage.settle()
        let rows = try await stage.rows("1")
        #expect(rows.count == 10)
        try await stage.expectSound()
      }
    }
  }
}
