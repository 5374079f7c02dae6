import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

extension EndToEnd {
  /// PostgreSQL goes away under a gateway, its readers and a writer, and comes back.
  @Suite(.serialized) struct Outages {
    /// Each transaction writes to both owners, so a replica that holds both shows whether one was torn.
    private static let schema = """
      CREATE TABLE events (id bigint PRIMARY KEY, owner text NOT NULL, n int NOT NULL);
      CREATE TABLE owners (name text PRIMARY KEY, n int NOT NULL);
      INSERT INTO owners VALUES ('ann', 0), ('bob', 0);
      """
    private static let rules = """
      bucket_definitions:
        owned:
          parameters: SELECT value AS owner FROM json_each(request.jwt() -> 'owners')
          data:
            - SELECT id, owner, n FROM events WHERE owner = bucket.owner
            - SELECT name AS id, n FROM owners WHERE name = bucket.owner
      """
    private static let owners = ["owners": ["ann", "bob"]]

    @Test("restarted, killed or orphaned, PostgreSQL costs its readers time and nothing else")
    func restarts() async throws {
      let cluster = PostgresCluster()
      try await Stage.set(schema: Self.schema, rules: Self.rules, in: cluster) { stage in
        let torn = Mutex<[String]>([])
        let check: @Sendable (Int, Content) -> Void = { tick, content in
          let numbers = content["owners"]?.values.compactMap { $0["n"]?.integer } ?? []
          if Set(numbers).count != 1 { torn.withLock { $0.append("tick \(tick): \(numbers)") } }
        }
        let both = try stage.replica("both", claims: Self.owners, onComplete: check)
        let ann = try stage.replica("ann", claims: ["owners": ["ann"]])
        let copy = try stage.sqliteCopy("copy", claims: Self.owners)
        both.connect()
        ann.connect()
        try copy.start()
        try await both.shows("both owners") { $0["owners"]?.count == 2 }

        let writer = Writer(stage)
        let writing = Task { await writer.run() }
        for ending in PostgresCluster.Ending.allCases {
          try await writer.makesProgress()
          try await cluster.stop(ending)
          try await says(503, stage, "after the end \(ending)")
          let logged = failures(stage.gateway.output)
          // New work is refused with a code, and told to come back.
          for (method, path) in [("GET", "/v1/buckets"), ("POST", "/v1/stream")] {
            let answer = try await HTTP.send(
              port: stage.gateway.port, method, path, token: try stage.token("x"),
              body: method == "POST" ? "{}" : nil)
            // A stream begins before the database is asked; its error is then its last line.
            #expect(answer.status == 503 || path == "/v1/stream" && answer.status == 200)
            #expect(answer.body.contains("SLUICE_DATABASE_UNAVAILABLE"), "\(answer.body)")
          }
          #expect(try await HTTP.get(port: stage.gateway.port, "/health").status == 200)
          await pause(2)
          // 0.2 + 0.4 + 0.8 s of the sequencer, and as few of the feed and of the listener.
          let attempts = failures(stage.gateway.output) - logged
          #expect((1...12).contains(attempts), "\(attempts) attempts in two seconds")

          try await cluster.start()
          let back = ContinuousClock.now
          try await says(200, stage, "after the start that follows \(ending)")
          let number = try await writer.makesProgress()
          for replica in [both, ann] {
            try await replica.shows("what was written after \(ending)") {
              $0["owners"]?["ann"]?["n"]?.integer ?? 0 >= number
            }
          }
          #expect(ContinuousClock.now - back < .seconds(20))
        }
        writing.cancel()
        await writing.value
        let source = try await stage.source.lines("SELECT id, owner, n FROM events ORDER BY id")
        let (last, acknowledged) = (writer.last, writer.acknowledged)
        #expect(
          acknowledged.isSubset(of: Set(source.compactMap { Int($0.split(separator: "|")[2]) })))
        for (replica, owners) in [(both, ["ann", "bob"]), (ann, ["ann"])] {
          let expected = source.filter { owners.contains(String($0.split(separator: "|")[1])) }
          try await replica.shows("everything up to \(last)") { content in
            Self.lines(content) == Set(expected)
          }
          // What it was told on the way is something a client can act upon.
          for error in replica.errors {
            #expect(error.contains("SLUICE_"), "\(replica.name): \(error)")
          }
        }
        let columns = ["events": ["owner", "n"]]
        try await copy.shows("everything", columns) { Self.lines($0) == Set(source) }
        await copy.stop()
        #expect(torn.withLock { $0 } == [])
        #expect(stage.violations == [])
        let verified = try await stage.verify()
        #expect(verified.status == 0, "\(verified.output)")
        #expect(stage.gateway.output.contains(#""event":"sequencer.leading""#))
      }
      try await cluster.stop()
    }

    private func says(_ status: Int, _ stage: Stage, _ when: String) async throws {
      try await eventually("/ready answers \(status) \(when)", within: 20) {
        let answer = try await HTTP.get(port: stage.gateway.port, "/ready")
        if answer.status == 503 {
          #expect(answer.body.contains("SLUICE_DATABASE_UNAVAILABLE"), "\(answer.body)")
          #expect(answer.headers["retry-after"] != nil)
        }
        return answer.status == status
      }
    }

    private func failures(_ log: String) -> Int {
      log.split(separator: "\n").count {
        $0.contains("sequencer.failed") || $0.contains("feed.read_failed")
          || $0.contains("feed.listen_failed")
      }
    }

    private static func lines(_ content: Content) -> Set<String> {
      Set(
        (content["events"] ?? [:]).map { id, row in
          "\(id)|\(row["owner"]?.string ?? "")|\(row["n"]?.integer ?? -1)"
        })
    }
  }
}

/// Writes transaction after transaction, and connects again whenever the server has gone.
private final class Writer: Sendable {
  private struct State {
    var number = 0
    var acknowledged: Set<Int> = []
  }

  private let configuration: PostgresConfiguration
  private let state = Mutex(State())

  init(_ stage: Stage) {
    configuration = PostgresConfiguration(
      connectionString: stage.source.connectionString, settings: ["search_path": "public"],
      connectTimeout: .seconds(5))
  }

  /// The number of the last transaction tried.
  var last: Int { state.withLock { $0.number } }
  /// The transactions whose COMMIT was answered.
  var acknowledged: Set<Int> { state.withLock { $0.acknowledged } }

  /// Waits for some commits from now on; the number of the last of them.
  @discardableResult
  func makesProgress() async throws -> Int {
    let before = acknowledged.count
    try await eventually("the writer makes progress", every: 0.01) {
      acknowledged.count >= before + 20
    }
    return acknowledged.max() ?? 0
  }

  func run() async {
    while !Task.isCancelled {
      do {
        let connection = try await PostgresConnection.connect(
          configuration, on: TestDatabase.loop)
        do {
          while !Task.isCancelled { try await write(connection) }
        } catch {
          // The server went: what became of the transaction is unknown to it, as to any application.
        }
        await connection.close()
      } catch {
        await pause(0.05)
      }
    }
  }

  private func write(_ connection: PostgresConnection) async throws {
    let number = state.withLock { state in
      state.number += 1
      return state.number
    }
    try await connection.execute(
      """
      BEGIN;
      INSERT INTO events SELECT \(number) * 10 + i, CASE i % 2 WHEN 0 THEN 'ann' ELSE 'bob' END, \(number)
        FROM generate_series(0, 3) i;
      DELETE FROM events WHERE id % 10 = 3 AND n = \(number) - 5;
      UPDATE events SET owner = CASE owner WHEN 'ann' THEN 'bob' ELSE 'ann' END
        WHERE id = (\(number) - 3) * 10 + 2;
      UPDATE owners SET n = \(number);
      COMMIT
      """)
    state.withLock { _ = $0.acknowledged.insert(number) }
  }
}
