import Postgres
import TestSupport
import Testing

@Suite struct PostgresListenTests {
  @Test func `a listener gets the notifications of its channel in order`() async throws {
    try await withDatabase { database in
      let listener = try await database.connect()
      let sender = try await database.connect()
      let quoted = try await listener.listen("odd \"Channel\"")
      let plain = try await listener.listen("plain")
      for number in 1...3 {
        _ = try await sender.query("SELECT pg_notify('plain', $1)", [.text("p\(number)")])
        _ = try await sender.query("SELECT pg_notify($1, 'q')", ["odd \"Channel\""])
      }
      var payloads: [String] = []
      for await notification in plain.prefix(3) {
        payloads.append(notification.payload)
        #expect(notification.channel == "plain")
        #expect(await notification.processID == sender.backendProcessID)
      }
      #expect(payloads == ["p1", "p2", "p3"])
      for await notification in quoted.prefix(3) { #expect(notification.payload == "q") }
    }
  }

  @Test func `a notification that arrives during a query is not lost`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let stream = try await connection.listen("own")
      _ = try await connection.query("SELECT pg_notify('own', 'a'), pg_sleep(0.05)")
      for await notification in stream.prefix(1) { #expect(notification.payload == "a") }
    }
  }

  @Test func `the stream ends with the connection`() async throws {
    try await withDatabase { database in
      let connection = try await database.connect()
      let other = try await database.connect()
      let stream = try await connection.listen("c")
      let victim = await connection.backendProcessID
      _ = try await other.query("SELECT pg_terminate_backend($1)", [.integer(Int64(victim))])
      for await _ in stream { Issue.record("nothing was sent") }
      await #expect(throws: PostgresError.self) { try await connection.listen("d") }
      let third = try await database.connect()
      let closedStream = try await third.listen("c")
      await third.close()
      for await _ in closedStream { Issue.record("nothing was sent") }
    }
  }
}
