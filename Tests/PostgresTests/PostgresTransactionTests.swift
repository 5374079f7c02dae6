import Postgres
import TestSupport
import Testing

@Suite struct PostgresTransactionTests {
  @Test func `a transaction commits, or is undone by an error thrown in it`() async throws {
    struct Stop: Error {}
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int)")
      let value = try await connection.transaction {
        _ = try await connection.query("INSERT INTO t VALUES (1)")
        return 5
      }
      #expect(value == 5)
      await #expect(throws: Stop.self) {
        try await connection.transaction {
          _ = try await connection.query("INSERT INTO t VALUES (2)")
          throw Stop()
        }
      }
      #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 1)
    }
  }

  @Test func `a transaction whose failed statement was ignored does not pretend to commit`()
    async throws
  {
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int)")
      let error = await #expect(throws: PostgresError.self) {
        try await connection.transaction {
          _ = try await connection.query("INSERT INTO t VALUES (1)")
          _ = try? await connection.query("SELECT 1/0")
        }
      }
      #expect(error?.code == "25P02")
      #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 0)
    }
  }

  @Test func `the error of a deferred constraint comes out of the commit`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
      let error = await #expect(throws: PostgresError.self) {
        try await connection.transaction {
          _ = try await connection.query("INSERT INTO t VALUES (1), (1)")
        }
      }
      #expect(error?.code == "23505")
      #expect(await connection.isInTransaction == false)
    }
  }

  @Test func `isolation and access are those asked for`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let result = try await connection.transaction(isolation: .repeatableRead, readOnly: true) {
        try await connection.query(
          "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
        )
      }
      #expect(result[0, 0] == "repeatable read")
      #expect(result[0, 1] == "on")
    }
  }

  @Test func `a conflict between serializable transactions is one to try again`() async throws {
    try await withDatabase { database in
      let first = try await database.connect()
      let second = try await database.connect()
      try await first.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
      let error = await #expect(throws: PostgresError.self) {
        try await first.transaction(isolation: .repeatableRead) {
          _ = try await first.query("SELECT * FROM t")
          _ = try await second.query("UPDATE t SET a = 2")
          _ = try await first.query("UPDATE t SET a = 3")
        }
      }
      #expect(error?.code == "40001")
      #expect(error?.isRetryable == true)
    }
  }
}
