import Foundation
import HTTPTransport
import Postgres
import SyncProtocol
import Synchronization
import Testing

@testable import SyncService

/// Rows that are larger than a page, over sockets, on PostgreSQL.
@Suite struct LargeRowTests {
  private static let mine: BucketName = "mine[\"u\"]"

  /// A row whose `pad` has so many MiB.
  private static func insert(_ id: String, owner: String = "u", _ v: Int, mebibytes: Int) -> String
  {
    "INSERT INTO items VALUES ('\(id)', '\(owner)', \(v), repeat('x', \(mebibytes) << 20));"
  }

  private func run(
    largeBytes: Int, _ body: (LiveGateway) async throws -> Void
  ) async throws {
    try await LiveGateway.run(schema: GatewayTests.schema, rules: GatewayTests.rules) {
      $0.streams.largeBytes = largeBytes
      $0.streams.slowReaderTimeout = .seconds(2)
    } _: {
      try await body($0)
    }
  }

  @Test func `a stream takes rows that only fit one after another, in pages and live`() async throws
  {
    try await run(largeBytes: 3 << 20) { gateway in
      try await gateway.source.execute(
        (1...4).map { Self.insert("i\($0)", $0, mebibytes: 2) }.joined())
      try await gateway.caughtUp()
      let source = gateway.source
      let client = ModelClient { count in
        guard count == 1 else { return }
        // One that the live feed carries, and then more than it does.
        Task {
          try await source.execute(Self.insert("i5", 5, mebibytes: 2))
          try await source.execute(
            "BEGIN;" + (6...12).map { Self.insert("i\($0)", $0, mebibytes: 2) }.joined() + "COMMIT")
        }
      }
      try await gateway.stream(
        to: client, token: try LiveGateway.token("u"), within: .seconds(60)
      ) {
        $0.completes.last?.rows[Self.mine]?.count == 12
      }
      client.state.withLock { state in
        #expect(state.faults == [])
        #expect(
          state.completes.last?.rows[Self.mine]
            == Dictionary(uniqueKeysWithValues: (1...12).map { ("i\($0)", $0) }))
      }
    }
  }

  @Test func `a page of one large row answers a plain request`() async throws {
    try await run(largeBytes: 3 << 20) { gateway in
      try await gateway.source.execute(
        Self.insert("i1", 1, mebibytes: 2) + Self.insert("i2", 2, mebibytes: 2))
      try await gateway.caughtUp()
      let token = try LiveGateway.token("u")
      var path = "/v1/buckets/mine%5B%22u%22%5D/rows"
      var rows: Set<String> = []
      for more in [true, false] {
        let answer = try await gateway.get(path, token: token)
        #expect(answer.status == 200)
        let object = try #require(
          try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any])
        #expect(object["more"] as? Bool == more)
        for operation in object["ops"] as? [[Any]] ?? [] {
          rows.insert(operation[1] as? String ?? "")
          #expect(((operation[5] as? [String: Any])?["pad"] as? String)?.utf8.count == 2 << 20)
        }
        path += "?after=" + (object["next"] as? String ?? "")
      }
      #expect(rows == ["i1", "i2"])
    }
  }

  @Test func `who does not take a large row lets others wait, not fail, until he is closed`()
    async throws
  {
    try await run(largeBytes: 24 << 20) { gateway in
      // More than sockets hold of themselves.
      try await gateway.source.execute(
        Self.insert("i1", 1, mebibytes: 24) + Self.insert("i2", owner: "other", 2, mebibytes: 24))
      try await gateway.caughtUp()
      let token = try LiveGateway.token("u")
      let stalled = try await gateway.transport.send(
        .init(
          method: "POST", url: gateway.url + "/v1/stream",
          headers: [("Authorization", "Bearer \(token)")], body: Array("{}".utf8)))
      #expect(stalled.status == 200)
      let client = ModelClient()
      let start = ContinuousClock.now
      try await gateway.stream(
        to: client, token: try LiveGateway.token("other"), within: .seconds(60)
      ) {
        $0.completes.last?.rows["mine[\"other\"]"] == ["i2": 2]
      }
      #expect(client.state.withLock { $0.faults } == [])
      // It had to wait until the stalled reader was closed.
      #expect(ContinuousClock.now - start > .seconds(1))
      withExtendedLifetime(stalled) {}
    }
  }
}
