import EventLoop
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite struct PostgresConnectionTests {
  @Test func `a query returns rows, names, types and counts`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let result = try await connection.query(
        "SELECT n AS number, NULL AS nothing, 'é' || n AS word, n > 1 AS big FROM generate_series(1, 2) n"
      )
      #expect(result.rowCount == 2)
      #expect(result.columnCount == 4)
      #expect(result.columnNames == ["number", "nothing", "word", "big"])
      #expect(result.int(1, 0) == 2)
      #expect(result[0, 1] == nil)
      #expect(result.isNull(0, 1))
      #expect(result[1, 2] == "é2")
      #expect(result.bool(0, 3) == false)
      #expect(result.bool(1, 3) == true)
      #expect(result.withBytes(row: 0, column: 2) { $0.map(Array.init) } == Array("é1".utf8))
      #expect(result.affectedRows == 2)
      #expect(result.int(0, 2) == nil)
    }
  }

  @Test func `integers are read over their whole range and not beyond`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let result = try await connection.query(
        """
        SELECT 9223372036854775807, (-9223372036854775808)::bigint, 9223372036854775808::numeric,
          0, '-', '', '1.0'
        """)
      #expect(result.int(0, 0) == .max)
      #expect(result.int(0, 1) == .min)
      #expect(result.int(0, 2) == nil)
      #expect(result.int(0, 3) == 0)
      #expect(result.int(0, 4) == nil)
      #expect(result.int(0, 5) == nil)
      #expect(result.int(0, 6) == nil)
    }
  }

  @Test func `binds of every kind arrive as they were`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let hostile = "a\"b\\c{d},NULL 'e' \n\t é 𝄞"
      let result = try await connection.query(
        """
        SELECT $1::text, $2::bigint, $3::boolean, $4::text IS NULL,
          array_length($5::text[], 1), ($5::text[])[1], ($5::text[])[2] IS NULL, ($5::text[])[3],
          $6::bigint[]::text, $7::text[] = '{}', ($5::text[])[4]
        """,
        [
          .text(hostile), -42, true, nil, .textArray([hostile, nil, "", "NULL"]),
          .integerArray([1, .min]), .textArray([]),
        ])
      #expect(result[0, 0] == hostile)
      #expect(result.int(0, 1) == -42)
      #expect(result.bool(0, 2) == true)
      #expect(result.bool(0, 3) == true)
      #expect(result.int(0, 4) == 4)
      #expect(result[0, 5] == hostile)
      #expect(result.bool(0, 6) == true)
      #expect(result[0, 7] == "")
      #expect(result[0, 8] == "{1,-9223372036854775808}")
      #expect(result.bool(0, 9) == true)
      #expect(result[0, 10] == "NULL")
    }
  }

  @Test func `a NUL byte in a bind or a statement is refused before it is sent`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      for (sql, bind, code) in [
        ("SELECT $1::text", PostgresValue.text("a\0b"), "22021"),
        ("SELECT $1::text[]", .textArray(["a\0b"]), "22021"),
        ("SELECT \0 $1::text", "a", "42601"),
      ] {
        let error = await #expect(throws: PostgresError.self) {
          try await connection.query(sql, [bind])
        }
        #expect(error?.code == code)
        #expect(error?.kind == .client)
      }
      await #expect(throws: PostgresError.self) { try await connection.execute("SELECT '\0'") }
      #expect(try await connection.query("SELECT 1").int(0, 0) == 1)
    }
  }

  @Test func `an error of the server carries its fields, and its description no data`() async throws
  {
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute(
        "CREATE TABLE secrets (id int CONSTRAINT only_once PRIMARY KEY, word text NOT NULL)")
      let insert = "INSERT INTO secrets VALUES ($1, $2)"
      _ = try await connection.query(insert, [4711, "hush"])
      let duplicate = await #expect(throws: PostgresError.self) {
        try await connection.query(insert, [4711, "hush"])
      }
      #expect(duplicate?.code == "23505")
      #expect(duplicate?.schema == "public")
      #expect(duplicate?.table == "secrets")
      #expect(duplicate?.constraint == "only_once")
      #expect(duplicate?.detail == "Key (id)=(4711) already exists.")
      #expect(duplicate?.isConnectionFailure == false)
      let description = try #require(duplicate.map { "\($0)" })
      #expect(!description.contains("4711"))
      let missing = await #expect(throws: PostgresError.self) {
        try await connection.query(insert, [4712, nil])
      }
      #expect(missing?.code == "23502")
      #expect(missing?.column == "word")
      let syntax = await #expect(throws: PostgresError.self) {
        try await connection.query("SELECT 1 FORM x y")
      }
      #expect(syntax?.code == "42601")
      #expect(syntax?.position == 15)
      #expect(try await connection.query("SELECT count(*) FROM secrets").int(0, 0) == 1)
    }
  }

  @Test func `a statement is prepared once, and the least recently used are freed`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let count =
        "SELECT count(*), count(*) FILTER (WHERE statement = $1) FROM pg_prepared_statements"
      let kept = "SELECT $1::int AS kept"
      for number in 0..<300 {
        _ = try await connection.query(kept, [1])
        _ = try await connection.query("SELECT \(number)")
      }
      let result = try await connection.query(count, [.text(kept)])
      #expect(result.int(0, 0) == 256)
      #expect(result.int(0, 1) == 1)
    }
  }

  @Test func `a prepared statement outdated by a new column is prepared again`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
      #expect(try await connection.query("SELECT * FROM t").columnCount == 1)
      try await connection.execute("ALTER TABLE t ADD COLUMN b int")
      #expect(try await connection.query("SELECT * FROM t").columnCount == 2)
      try await connection.execute("DEALLOCATE ALL")
      #expect(try await connection.query("SELECT * FROM t").columnCount == 2)
    }
  }

  @Test func `a script of many statements runs as one transaction`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int)")
      let error = await #expect(throws: PostgresError.self) {
        try await connection.execute(
          "INSERT INTO t VALUES (1); SELECT 1/0; INSERT INTO t VALUES (2)")
      }
      #expect(error?.code == "22012")
      #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 0)
    }
  }

  @Test func `a pipeline returns every result in order`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let results = try await connection.pipeline(
        [("CREATE TABLE t (a int)", [])]
          + (1...50).map { ("INSERT INTO t VALUES ($1)", [.integer($0)]) }
          + [("SELECT sum(a) FROM t", [])])
      #expect(results.count == 52)
      #expect(results[1].affectedRows == 1)
      #expect(results[51].int(0, 0) == 1275)
    }
  }

  @Test func `an error in a pipeline undoes all of it and is the first one`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
      let error = await #expect(throws: PostgresError.self) {
        try await connection.pipeline([
          ("INSERT INTO t VALUES (1)", []), ("INSERT INTO t VALUES (1)", []),
          ("SELECT 1/0", []), ("SELECT never_prepared", []),
        ])
      }
      #expect(error?.code == "23505")
      #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 0)
      _ = try await connection.query("INSERT INTO t VALUES (1)")
      let second = await #expect(throws: PostgresError.self) {
        try await connection.query("SELECT 1/0")
      }
      #expect(second?.code == "22012")
    }
  }

  @Test func `a pipeline larger than the socket's buffers in both directions does not stall`()
    async throws
  {
    try await withDatabase { database in
      let connection = try await database.connect()
      let text = String(repeating: "x", count: 1_000_000)
      let results = try await connection.pipeline(
        (0..<20).map { _ in ("SELECT $1::text", [.text(text)]) })
      #expect(results.allSatisfy { $0.withBytes(row: 0, column: 0) { $0?.count } == 1_000_000 })
    }
  }

  @Test func `calls of many tasks are carried out one after the other`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let sum = try await withThrowingTaskGroup(of: Int64.self) { group in
        for number in 1...200 {
          group.addTask {
            try await connection.query("SELECT $1::bigint", [.integer(Int64(number))]).int(0, 0)
              ?? 0
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(sum == 20_100)
    }
  }

  @Test func `settings are those of the session`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect(settings: [
        "TimeZone": "Asia/Kathmandu", "statement_timeout": "1234ms",
      ])
      let result = try await connection.query(
        """
        SELECT current_setting('TimeZone'), current_setting('statement_timeout'),
          current_setting('application_name'), current_setting('client_encoding')
        """)
      #expect(result[0, 0] == "Asia/Kathmandu")
      #expect(result[0, 1] == "1234ms")
      #expect(result[0, 2] == "sluice")
      #expect(result[0, 3] == "UTF8")
      let error = await #expect(throws: PostgresError.self) {
        try await database.connect(settings: ["no_such_setting": "1"])
      }
      #expect(error?.code == "42704")
    }
  }

  @Test func `COPY brings in rows, and undoes them all when a row or their source fails`()
    async throws
  {
    struct SourceFailed: Error {}
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int, b text)")
      @Sendable func chunks(_ count: Int, last: @escaping @Sendable () throws -> [UInt8]?)
        -> @Sendable () async throws -> [UInt8]?
      {
        let sent = Mutex(0)
        return {
          let number = sent.withLock { sent in
            sent += 1
            return sent
          }
          if number > count { return number == count + 1 ? try last() : nil }
          return Array((0..<1000).map { "\(number)\trow \($0) \\\\\n" }.joined().utf8)
        }
      }
      let copied = try await connection.copyIn("COPY t FROM STDIN", chunks(200) { nil })
      #expect(copied == 200_000)
      let result = try await connection.query("SELECT count(*), min(b) FROM t")
      #expect(result.int(0, 0) == 200_000)
      #expect(result[0, 1] == "row 0 \\")
      let bad = await #expect(throws: PostgresError.self) {
        try await connection.copyIn("COPY t FROM STDIN", chunks(3) { Array("x\ty\n".utf8) })
      }
      #expect(bad?.code == "22P02")
      await #expect(throws: SourceFailed.self) {
        try await connection.copyIn("COPY t FROM STDIN", chunks(3) { throw SourceFailed() })
      }
      #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 200_000)
      await #expect(throws: PostgresError.self) {
        try await connection.execute("COPY t FROM STDIN")
      }
      #expect(try await connection.query("SELECT 1").int(0, 0) == 1)
    }
  }
}
