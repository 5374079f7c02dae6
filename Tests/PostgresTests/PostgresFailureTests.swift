import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct PostgresFailureTests {
  @Test func `a query whose server process is ended fails as a lost connection`() async throws {
    try await withDatabase { database in
      let other = try await database.connect()
      for _ in 0..<20 {
        let connection = try await database.connect()
        let victim = await connection.backendProcessID
        let sleeping = Task { try await connection.query("SELECT pg_sleep(60)") }
        try await waitUntilActive(victim, seenBy: other)
        _ = try await other.query("SELECT pg_terminate_backend($1)", [.integer(Int64(victim))])
        let error = await #expect(throws: PostgresError.self) { try await sleeping.value }
        #expect(error?.code == "57P01")
        #expect(error?.isConnectionFailure == true)
        #expect(connection.closed)
        let later = await #expect(throws: PostgresError.self) {
          try await connection.query("SELECT 1")
        }
        #expect(later?.isConnectionFailure == true)
      }
    }
  }

  @Test func `an idle connection notices that its server process has ended`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let other = try await database.connect()
      let victim = await connection.backendProcessID
      _ = try await other.query("SELECT pg_terminate_backend($1)", [.integer(Int64(victim))])
      try await waitUntil { connection.closed }
    }
  }

  @Test func `a cancelled task's query is cancelled and the connection stays usable`() async throws
  {
    try await withDatabase { database in
      let connection = try await database.connect()
      let other = try await database.connect()
      let start = ContinuousClock.now
      let sleeping = Task { try await connection.query("SELECT pg_sleep(60)") }
      try await waitUntilActive(await connection.backendProcessID, seenBy: other)
      // Only now: tasks may begin in any order.
      let waiting = Task { try await connection.query("SELECT 2") }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
      sleeping.cancel()
      await #expect(throws: CancellationError.self) { try await sleeping.value }
      #expect(ContinuousClock.now - start < .seconds(20))
      #expect(try await connection.query("SELECT 3").int(0, 0) == 3)
    }
  }

  @Test func `cancelling the running query from outside gives its caller the server's error`()
    async throws
  {
    try await withDatabase { database in
      let connection = try await database.connect()
      let other = try await database.connect()
      let sleeping = Task { try await connection.query("SELECT pg_sleep(60)") }
      try await waitUntilActive(await connection.backendProcessID, seenBy: other)
      await connection.cancelRunning()
      let error = await #expect(throws: PostgresError.self) { try await sleeping.value }
      #expect(error?.code == "57014")
    }
  }

  @Test func `a cancellation never hits another task's query`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      var generator = SeededGenerator()
      for _ in 0..<60 {
        let doomed = Task { try await connection.query("SELECT pg_sleep(0.002)") }
        try await Task.sleep(for: .microseconds(Int.random(in: 0...4000, using: &generator)))
        doomed.cancel()
        let innocent = Task { try await connection.query("SELECT pg_sleep(0.001), 7") }
        #expect(try await innocent.value.int(0, 1) == 7)
        _ = await doomed.result
      }
    }
  }

  @Test func `a cancelled transaction is rolled back`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let other = try await database.connect()
      try await connection.execute("CREATE TABLE t (a int)")
      let doomed = Task {
        try await connection.transaction {
          _ = try await connection.query("INSERT INTO t VALUES (1)")
          _ = try await connection.query("SELECT pg_sleep(60)")
        }
      }
      try await waitUntilActive(
        await connection.backendProcessID, running: "SELECT pg_sleep(60)", seenBy: other)
      doomed.cancel()
      await #expect(throws: CancellationError.self) { try await doomed.value }
      #expect(await connection.isInTransaction == false)
      #expect(try await connection.query("SELECT count(*) FROM t").int(0, 0) == 0)
    }
  }

  @Test func `a closed connection fails its running query and later ones`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let other = try await database.connect()
      let sleeping = Task { try await connection.query("SELECT pg_sleep(60)") }
      try await waitUntilActive(await connection.backendProcessID, seenBy: other)
      await connection.close()
      await #expect(throws: PostgresError.self) { try await sleeping.value }
      await #expect(throws: PostgresError.self) { try await connection.query("SELECT 1") }
    }
  }

  @Test func `connecting to nothing, to no database, or with nonsense fails and says so`() async {
    let loop = EventLoop(name: "test")
    for text in [
      "host=/nonexistent dbname=x", "postgresql://localhost:1/x", "postgresql://[", "no=such",
    ] {
      let error = await #expect(throws: PostgresError.self) {
        try await PostgresConnection.connect(.init(connectionString: text), on: loop)
      }
      #expect(error?.isConnectionFailure == true)
      #expect(error?.message.isEmpty == false)
    }
  }

  @Test func `connecting to a server that does not answer ends at the deadline`() async throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && listen(listener, 8) == 0
          && getsockname(listener, $0, &size) == 0
      }
    }
    #expect(isBound)
    let port = UInt16(bigEndian: address.sin_port)
    let start = ContinuousClock.now
    let error = await #expect(throws: PostgresError.self) {
      try await PostgresConnection.connect(
        .init(
          connectionString: "postgresql://x@127.0.0.1:\(port)/x?sslmode=disable",
          connectTimeout: .milliseconds(200)),
        on: EventLoop(name: "test"))
    }
    #expect(error?.isConnectionFailure == true)
    #expect(ContinuousClock.now - start < .seconds(10))
  }

  @Test func `a million rows take memory in proportion, and give it back`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let before = try residentBytes()
      do {
        let result = try await connection.query(
          "SELECT n, repeat('x', 80) FROM generate_series(1, 1000000) n")
        #expect(result.rowCount == 1_000_000)
        #expect(result.int(999_999, 0) == 1_000_000)
        // 87 bytes of data and libpq's own 32 for the places of two values, plus slack.
        let used = try residentBytes() - before
        #expect(used < 400 << 20)
      }
      #expect(try await connection.query("SELECT 1").rowCount == 1)
    }
  }

  @Test func `a server killed, and started again, is one to connect to anew`() async throws {
    let cluster = PostgresCluster()
    let database = try await cluster.createDatabase()
    let loop = EventLoop(name: "test")
    let pool = PostgresPool(
      configuration: database.configuration(), loop: loop, size: 2)
    try await pool.withConnection { try await $0.execute("CREATE TABLE t (a int)") }
    let connection = try await database.connect(on: loop)
    let sleeping = Task { try await connection.query("SELECT pg_sleep(60)") }
    try await pool.withConnection {
      try await waitUntilActive(await connection.backendProcessID, seenBy: $0)
    }
    _ = try await pool.withConnection { try await $0.query("INSERT INTO t VALUES (1)") }
    try await cluster.kill9()
    let error = await #expect(throws: PostgresError.self) { try await sleeping.value }
    #expect(error?.isConnectionFailure == true)
    let refused = await #expect(throws: PostgresError.self) {
      try await pool.withConnection { try await $0.query("SELECT 1") }
    }
    #expect(refused?.isConnectionFailure == true)
    try await cluster.start()
    let count = try await pool.withConnection { try await $0.query("SELECT count(*) FROM t") }
    #expect(count.int(0, 0) == 1)
    try await cluster.restart()
    try await waitUntil {
      try await pool.withConnection { try await $0.query("SELECT 1") }.rowCount == 1
    }
    await pool.close()
    try await cluster.stop()
  }

  private func residentBytes() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return (Int(text.split(separator: " ")[1]) ?? 0) * 4096
  }
}

/// Waits until a server process sleeps within a statement.
private func waitUntilActive(
  _ process: Int32, running text: String = "", seenBy connection: PostgresConnection
) async throws {
  try await waitUntil {
    let result = try await connection.query(
      """
      SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep' AND strpos(query, $2) = 1
      """, [.integer(Int64(process)), .text(text)])
    return result.rowCount == 1
  }
}

private func waitUntil(_ condition: () async throws -> Bool) async throws {
  for _ in 0..<2000 {
    if try await condition() { return }
    try await Task.sleep(for: .milliseconds(10))
  }
  Issue.record("the condition did not come about in time")
}
