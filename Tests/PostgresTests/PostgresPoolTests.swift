import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import Postgres

@Suite struct PostgresPoolTests {
  private func pool(
    _ database: TestDatabase, size: Int, waitTimeout: Duration = .seconds(20)
  ) -> PostgresPool {
    PostgresPool(
      configuration: database.configuration(), loop: TestDatabase.loop, size: size,
      waitTimeout: waitTimeout)
  }

  @Test func `a pool lends at most as many connections as it has, and uses them again`()
    async throws
  {
    try await withDatabase { database in
      let pool = pool(database, size: 3)
      let processes = try await withThrowingTaskGroup(of: Int64?.self) { group in
        for _ in 0..<100 {
          group.addTask {
            try await pool.withConnection {
              try await $0.query("SELECT pg_backend_pid(), pg_sleep(0.001)").int(0, 0)
            }
          }
        }
        return try await group.reduce(into: Set<Int64?>()) { $0.insert($1) }
      }
      #expect((1...3).contains(processes.count))
      await pool.close()
    }
  }

  @Test func `callers are served in the order they came`() async throws {
    try await withDatabase { database in
      let pool = pool(database, size: 1)
      let order = Order()
      let (gate, opening) = AsyncStream.makeStream(of: Void.self)
      let holder = Task { try await pool.withConnection { _ in for await _ in gate {} } }
      try await Task.sleep(for: .milliseconds(100))
      var callers: [Task<Void, any Error>] = []
      for number in 0..<20 {
        callers.append(Task { try await pool.withConnection { _ in order.append(number) } })
        // Time to arrive before the next.
        try await Task.sleep(for: .milliseconds(5))
      }
      opening.finish()
      try await holder.value
      for caller in callers { try await caller.value }
      #expect(order.numbers == Array(0..<20))
      await pool.close()
    }
  }

  @Test func `a caller who waits too long, or is cancelled, leaves the pool whole`() async throws {
    try await withDatabase { database in
      let pool = pool(database, size: 1, waitTimeout: .milliseconds(100))
      try await pool.withConnection { _ in
        let error = await #expect(throws: PostgresError.self) {
          try await pool.withConnection { _ in }
        }
        #expect(error?.code == "SLUICE_POOL_TIMEOUT")
        #expect(error?.kind == .pool)
        let cancelled = Task { try await pool.withConnection { _ in } }
        try await Task.sleep(for: .milliseconds(10))
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
      }
      for _ in 0..<3 { try await pool.withConnection { _ = try await $0.query("SELECT 1") } }
      await pool.close()
    }
  }

  @Test func `a lost connection is replaced`() async throws {
    try await withDatabase { database in
      let pool = pool(database, size: 1)
      for _ in 0..<3 {
        await #expect(throws: PostgresError.self) {
          try await pool.withConnection {
            try await $0.query("SELECT pg_terminate_backend(pg_backend_pid())")
          }
        }
        let result = try await pool.withConnection { try await $0.query("SELECT 1") }
        #expect(result.rowCount == 1)
      }
      await pool.close()
    }
  }

  @Test func `a connection returned within a transaction is not lent again`() async throws {
    try await withDatabase { database in
      let pool = pool(database, size: 1)
      try await pool.withConnection {
        try await $0.execute("BEGIN; CREATE TABLE t (a int)")
      }
      try await pool.withConnection {
        let isInTransaction = await $0.isInTransaction
        #expect(!isInTransaction)
        let table = try await $0.query("SELECT to_regclass('t')")
        #expect(table[0, 0] == nil)
      }
      await pool.close()
    }
  }

  @Test func `a closed pool refuses callers and closes its connections`() async throws {
    try await withDatabase { database in
      let pool = pool(database, size: 2)
      let kept = try await pool.withConnection { $0 }
      await pool.close()
      #expect(kept.closed)
      let error = await #expect(throws: PostgresError.self) {
        try await pool.withConnection { _ in }
      }
      #expect(error?.code == "SLUICE_POOL_CLOSED")
    }
  }

  @Test func `a pool survives random cancellation with all its connections`() async throws {
    try await withDatabase { database in
      let pool = pool(database, size: 2)
      var generator = SeededGenerator()
      let delays = (0..<80).map { _ in Int.random(in: 0...8000, using: &generator) }
      await withTaskGroup(of: Void.self) { group in
        for delay in delays {
          group.addTask {
            let caller = Task {
              try await pool.withConnection { try await $0.query("SELECT pg_sleep(0.002)") }
            }
            try? await Task.sleep(for: .microseconds(delay))
            caller.cancel()
            _ = await caller.result
          }
        }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
          group.addTask {
            try await pool.withConnection { _ = try await $0.query("SELECT pg_sleep(0.05)") }
          }
        }
        try await group.waitForAll()
      }
      await pool.close()
    }
  }
}

private final class Order: Sendable {
  private let list = Mutex<[Int]>([])
  var numbers: [Int] { list.withLock { $0 } }
  func append(_ number: Int) { list.withLock { $0.append(number) } }
}

@Suite struct PoolStateMachineTests {
  @Test func `a waiting caller gets a returned connection, or the permit to open one`() {
    var machine = PoolStateMachine<String>(size: 1)
    guard case .open = machine.arrive(1) else { return record() }
    guard case .wait = machine.arrive(2) else { return record() }
    guard case .wait = machine.arrive(3) else { return record() }
    guard case .hand("a", to: 2) = machine.giveBack("a") else { return record() }
    guard case .hand(nil, to: 3) = machine.giveBack(nil) else { return record() }
    guard case .keep = machine.giveBack("b") else { return record() }
    guard case .use("b") = machine.arrive(4) else { return record() }
  }

  @Test func `a caller who left is passed over`() {
    var machine = PoolStateMachine<String>(size: 1)
    _ = machine.arrive(1)
    _ = machine.arrive(2)
    _ = machine.arrive(3)
    let left = [machine.leave(2), machine.leave(2), machine.leave(1)]
    #expect(left == [true, false, false])
    guard case .hand("a", to: 3) = machine.giveBack("a") else { return record() }
  }

  @Test func `closing gives out what is idle and who waits, and refuses the rest`() {
    var machine = PoolStateMachine<String>(size: 2)
    _ = machine.arrive(1)
    _ = machine.arrive(2)
    _ = machine.arrive(3)
    let (connections, callers) = machine.close()
    #expect(connections.isEmpty)
    #expect(callers == [3])
    guard case .refuse = machine.arrive(4) else { return record() }
    guard case .close("a") = machine.giveBack("a") else { return record() }
    guard case .keep = machine.giveBack(nil) else { return record() }
  }

  private func record() {
    Issue.record("another action was expected")
  }
}
