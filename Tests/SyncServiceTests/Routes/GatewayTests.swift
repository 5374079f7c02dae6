import Foundation
import HTTPTransport
import Postgres
import SyncProtocol
import Synchronization
import TestSupport
import Testing

@testable import SyncService

/// The routes over sockets, on PostgreSQL.
@Suite struct GatewayTests {
  static let schema = """
    CREATE TABLE items (id text PRIMARY KEY, owner text, v int, pad text);
    CREATE TABLE members (id text PRIMARY KEY, team text, person text);
    CREATE TABLE notes (id text PRIMARY KEY, team text, v int);
    """

  static let rules = """
    bucket_definitions:
      mine:
        priority: 1
        parameters: SELECT request.user_id() AS owner
        data:
          - SELECT id, v, pad FROM items WHERE owner = bucket.owner
      team:
        parameters: SELECT team FROM members WHERE person = request.user_id()
        data:
          - SELECT id, v FROM notes WHERE team = bucket.team
    """

  private func run(
    configure: (inout ServiceConfiguration) -> Void = { _ in },
    _ body: (LiveGateway) async throws -> Void
  ) async throws {
    try await LiveGateway.run(
      schema: Self.schema, rules: Self.rules, configure: configure, body)
  }

  private func expectExact(_ client: ModelClient) {
    client.state.withLock { #expect($0.faults == []) }
  }

  @Test func `a transaction that commits late arrives at the next checkpoint`() async throws {
    try await run { gateway in
      let other = try await gateway.database.connect()
      try await other.execute("BEGIN; INSERT INTO items VALUES ('late', 'u', 1)")
      try await gateway.source.execute("INSERT INTO items VALUES ('early', 'u', 2)")
      try await gateway.caughtUp()
      let client = ModelClient { count in
        // The first complete has come; the other transaction may end.
        guard count == 1 else { return }
        Task { try await other.execute("COMMIT") }
      }
      try await gateway.stream(to: client, token: try LiveGateway.token("u")) {
        $0.completes.last?.rows["mine[\"u\"]"]?.count == 2
      }
      expectExact(client)
      client.state.withLock { state in
        #expect(state.completes.first?.rows["mine[\"u\"]"] == ["early": 2])
        #expect(state.completes.last?.rows["mine[\"u\"]"] == ["early": 2, "late": 1])
      }
      await other.close()
    }
  }

  @Test func `a membership that ends takes its rows away and hides what comes after`() async throws
  {
    try await run { gateway in
      try await gateway.source.execute(
        """
        INSERT INTO members VALUES ('m1', 'red', 'u'), ('m2', 'blue', 'u');
        INSERT INTO notes VALUES ('n1', 'red', 1), ('n2', 'blue', 2);
        """)
      let source = gateway.source
      let client = ModelClient { _ in }
      let token = try LiveGateway.token("u")
      try await gateway.stream(to: client, token: token) {
        $0.completes.last?.rows["team[\"red\"]"] == ["n1": 1]
          && $0.completes.last?.rows["team[\"blue\"]"] == ["n2": 2]
      }
      let revoked = Mutex(false)
      let watching = ModelClient { _ in
        guard
          !revoked.withLock({
            let was = $0
            $0 = true
            return was
          })
        else { return }
        Task {
          try await source.execute(
            """
            BEGIN; DELETE FROM members WHERE team = 'red';
            INSERT INTO notes VALUES ('secret', 'red', 9), ('open', 'blue', 3); COMMIT
            """)
        }
      }
      watching.state.withLock { state in state.copies = client.state.withLock { $0.copies } }
      try await gateway.stream(to: watching, token: token) { state in
        state.completes.last?.rows["team[\"blue\"]"] == ["n2": 2, "open": 3]
      }
      expectExact(watching)
      watching.state.withLock { state in
        #expect(state.copies["team[\"red\"]"] == nil)
        #expect(!state.received.contains("secret"))
      }
    }
  }

  @Test func `urgent buckets are complete before the others are sent`() async throws {
    try await run { gateway in
      try await gateway.source.execute(
        """
        INSERT INTO members VALUES ('m1', 'red', 'u');
        INSERT INTO notes VALUES ('n1', 'red', 1);
        INSERT INTO items VALUES ('i1', 'u', 2);
        """)
      try await gateway.caughtUp()
      let client = ModelClient()
      try await gateway.stream(to: client, token: try LiveGateway.token("u")) {
        $0.completes.last?.rows.values.allSatisfy { !$0.isEmpty } == true
      }
      expectExact(client)
      #expect(client.state.withLock { $0.partials } == [1])
    }
  }

  @Test func `a client that comes back gets what it lacks, and nothing again`() async throws {
    try await run { gateway in
      try await gateway.source.execute("INSERT INTO items VALUES ('i1', 'u', 1), ('i2', 'u', 2)")
      let client = ModelClient()
      let token = try LiveGateway.token("u")
      try await gateway.stream(to: client, token: token) {
        $0.completes.last?.rows["mine[\"u\"]"]?.count == 2
      }
      client.state.withLock { $0.received = [] }
      try await gateway.source.execute("UPDATE items SET v = 3 WHERE id = 'i2'")
      try await gateway.stream(to: client, token: token) {
        $0.completes.last?.rows["mine[\"u\"]"]?["i2"] == 3
      }
      expectExact(client)
      #expect(client.state.withLock { $0.received } == ["i2"])
    }
  }

  @Test func `a position of another database resets the bucket and nothing old is left`()
    async throws
  {
    try await run { gateway in
      try await gateway.source.execute("INSERT INTO items VALUES ('i1', 'u', 1)")
      try await gateway.caughtUp()
      let client = ModelClient()
      client.state.withLock { state in
        state.copies["mine[\"u\"]"] = ModelClient.Copy(
          start: 16, rows: ["old": (1, 5)],
          position: SyncPosition(stamp: "2020-01-01T00:00:00.000000Z", id: 1600, start: 16))
      }
      try await gateway.stream(to: client, token: try LiveGateway.token("u")) {
        $0.completes.last?.rows["mine[\"u\"]"] == ["i1": 1]
      }
      expectExact(client)
      #expect(client.state.withLock { $0.resets } == ["mine[\"u\"]"])
    }
  }

  @Test func `two users with slices apart hear nothing of each other`() async throws {
    try await run { gateway in
      try await gateway.source.execute("INSERT INTO items VALUES ('a1', 'a', 1), ('b1', 'b', 1)")
      try await gateway.caughtUp()
      let source = gateway.source
      let client = ModelClient { count in
        guard count == 1 else { return }
        Task {
          try await source.execute("DELETE FROM items WHERE id = 'a1'")
          try await source.execute("INSERT INTO items VALUES ('b2', 'b', 2)")
        }
      }
      try await gateway.stream(to: client, token: try LiveGateway.token("b")) {
        $0.copies["mine[\"b\"]"]?.rows.count == 2
      }
      expectExact(client)
      #expect(client.state.withLock { $0.received } == ["b1", "b2"])
    }
  }

  @Test func `a token that runs out ends the stream, and an old one is refused`() async throws {
    try await run { gateway in
      let client = ModelClient()
      let ended = try await gateway.stream(
        to: client, token: try LiveGateway.token("u", lifetime: 2)
      ) { _ in false }
      #expect(ended.ended)
      #expect(client.state.withLock { $0.keepalives.last } == 0)
      let answer = try await gateway.send(
        "POST", "/v1/stream", token: try LiveGateway.token("u", lifetime: -5), body: "{}")
      #expect(answer.status == 401)
      #expect(answer.errorCode == "SLUICE_AUTH_EXPIRED")
    }
  }

  @Test func `a database that drops its connections ends no client's work`() async throws {
    try await run { gateway in
      try await gateway.source.execute("INSERT INTO items VALUES ('i1', 'u', 1)")
      let token = try LiveGateway.token("u")
      let client = ModelClient()
      let source = gateway.source
      let name = gateway.database.name
      let cut = ModelClient { count in
        guard count == 1 else { return }
        Task {
          _ = try await source.query(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = $1::text AND pid <> pg_backend_pid()
            """, [.text(name)])
          try await source.execute("INSERT INTO items VALUES ('i2', 'u', 2)")
        }
      }
      _ = try await gateway.stream(to: cut, token: token) { state in
        state.completes.last?.rows["mine[\"u\"]"]?.count == 2
      }
      client.state.withLock { state in state.copies = cut.state.withLock { $0.copies } }
      try await gateway.stream(to: client, token: token) {
        $0.completes.last?.rows["mine[\"u\"]"] == ["i1": 1, "i2": 2]
      }
      expectExact(cut)
      expectExact(client)
    }
  }

  @Test func `a reader that stops is closed in time, and holds nobody up`() async throws {
    try await run { configuration in
      configuration.streams.slowReaderTimeout = .seconds(1)
      configuration.streams.sendQueueBytes = 64 << 10
    } _: { gateway in
      try await gateway.source.execute(
        "INSERT INTO items SELECT 'i' || i, 'u', i, repeat('x', 2000) FROM generate_series(1, 2000) i"
      )
      try await gateway.caughtUp()
      let token = try LiveGateway.token("u")
      let stalled = try await gateway.transport.send(
        .init(
          method: "POST", url: gateway.url + "/v1/stream",
          headers: [("Authorization", "Bearer \(token)")], body: Array("{}".utf8)))
      #expect(stalled.status == 200)
      let client = ModelClient()
      try await gateway.stream(to: client, token: token) {
        $0.completes.last?.rows["mine[\"u\"]"]?.count == 2_000
      }
      expectExact(client)
      let deadline = ContinuousClock.now + .seconds(10)
      while gateway.services.gateway.gate.openCount > 0, .now < deadline {
        try await Task.sleep(for: .milliseconds(50))
      }
      #expect(gateway.services.gateway.gate.openCount == 0)
      withExtendedLifetime(stalled) {}
    }
  }
}
