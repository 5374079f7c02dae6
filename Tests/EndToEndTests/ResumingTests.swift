import Foundation
import Synchronization
import Testing

extension EndToEnd {
  /// Whatever is cut, killed or moved, a replica goes on from where it stood or starts over, and never shows a mixture.
  @Suite(.serialized) struct Resuming {
    static let notes = """
      CREATE TABLE notes (id int PRIMARY KEY, owner text NOT NULL, body text NOT NULL);
      INSERT INTO notes SELECT n, CASE n % 2 WHEN 0 THEN 'ann' ELSE 'bob' END, repeat('x', 100) || n
      FROM generate_series(1, 20000) AS n;
      """
    static let notesByOwner = """
      bucket_definitions:
        mine:
          parameters: SELECT request.user_id() AS owner
          data:
            - SELECT id, body FROM notes WHERE owner = bucket.owner
      """
    static let noteColumns = ["notes": ["body"]]

    @Test("idle-restart: after a restart without writes nothing is downloaded again")
    func idleRestart() async throws {
      try await Stage.set(schema: Self.notes, rules: Self.notesByOwner) { stage in
        let ann = try stage.replica("ann")
        try await ann.sync()
        let (ops, content) = (ann.opsReceived, ann.content)
        #expect(content["notes"]?.count == 10_000)
        for stops in [true, false] {
          if stops { await stage.gateway.stop() } else { await stage.gateway.kill9() }
          try await stage.gateway.start()
          try await ann.sync()
        }
        #expect(ann.opsReceived == ops)
        #expect(ann.resets == 0)
        #expect(ann.content == content)
        try await stage.change("UPDATE notes SET body = 'new' WHERE id = 2")
        try await ann.sync()
        #expect(ann.content["notes"]?["2"]?["body"] == .text("new"))
        #expect(ann.opsReceived == ops + 1)
        #expect(stage.violations == [])
      }
    }

    @Test(
      "kill-first-sync: gateway and client killed during the first sync; half is never taken for whole"
    )
    func killFirstSync() async throws {
      try await Stage.set(schema: Self.notes, rules: Self.notesByOwner) { stage in
        let ann = try stage.replica("ann")
        ann.connect()
        try await eventually("some rows are on the way", every: 0.001) { ann.stagedOps > 200 }
        await stage.gateway.kill9()
        #expect(ann.completes == 0 && ann.content.isEmpty || ann.ids("notes").count == 10_000)
        try await stage.gateway.start()
        try await ann.shows("every row") { $0["notes"]?.count == 10_000 }
        #expect(ann.opsReceived < 20_000, "it began from nothing")

        let copy = try stage.sqliteCopy("bob")
        for delay in [0.02, 0.06, 0.12, 0.2, 0.3] {
          try copy.start("sync")
          await pause(delay)
          await copy.kill9()
          if let content = try await copy.content(Self.noteColumns) {
            let count = content["notes"]?.count ?? 0
            #expect(count == 0 || count == 10_000)
          }
        }
        let result = try await copy.sync()
        #expect(result.status == 0, "\(result.output)")
        let rows = try await copy.content(Self.noteColumns)?["notes"]
        #expect(rows?.count == 10_000)
        #expect(rows?["19999"]?["body"] == .text(String(repeating: "x", count: 100) + "19999"))
        #expect(stage.violations == [])
      }
    }

    @Test(
      "kill-anywhere: kills of client and gateway under load show no partial checkpoint and lose nothing"
    )
    func killAnywhere() async throws {
      let schema = """
        CREATE TABLE pairs (id int PRIMARY KEY, half int NOT NULL, n int NOT NULL);
        INSERT INTO pairs SELECT n, n % 2, 0 FROM generate_series(1, 200) AS n;
        """
      let rules = """
        bucket_definitions:
          half:
            parameters: SELECT value AS half FROM json_each(request.jwt() -> 'halves')
            data:
              - SELECT id, half, n FROM pairs WHERE half = bucket.half
        """
      try await Stage.set(schema: schema, rules: rules) { stage in
        let columns = ["pairs": ["half", "n"]]
        let mixed = Mutex(0)
        let copy = try stage.sqliteCopy("ann", claims: ["halves": [0, 1]])
        let ann = try stage.replica("ann", claims: ["halves": [0, 1]]) { _, content in
          let numbers = Set(content["pairs"]?.values.map { $0["n"] } ?? [])
          if numbers.count != 1 { mixed.withLock { $0 += 1 } }
        }
        ann.connect()
        let writer = Task {
          for number in 1...400 where !Task.isCancelled {
            try await stage.source.run("UPDATE pairs SET n = \(number)")
          }
        }
        var samples = 0
        for round in 0..<6 {
          try copy.start()
          for _ in 0..<4 {
            await pause(0.15)
            if let content = try await copy.content(columns), let pairs = content["pairs"] {
              samples += 1
              #expect(pairs.count == 200)
              #expect(Set(pairs.values.map { $0["n"] }).count == 1)
            }
          }
          await copy.kill9()
          if round % 2 == 1 {
            await stage.gateway.kill9()
            try await stage.gateway.start()
          }
        }
        writer.cancel()
        _ = try? await writer.value
        try await stage.source.run("UPDATE pairs SET n = 1000")
        try copy.start()
        try await copy.shows("the last write", columns) { content in
          content["pairs"]?.values.allSatisfy { $0["n"] == .number("1000") } == true
            && content["pairs"]?.count == 200
        }
        await copy.stop()
        try await ann.shows("the last write") { $0["pairs"]?["1"]?["n"] == .number("1000") }
        #expect(mixed.withLock { $0 } == 0)
        #expect(samples > 0)
        #expect(stage.violations == [])
        #expect(try await stage.verify().status == 0)
      }
    }

    @Test("long-offline: past the retention of tombstones, stale rows still go")
    func longOffline() async throws {
      try await Stage.set(
        schema: Self.notes, rules: Self.notesByOwner, settings: "retention: {tombstones: 1s}"
      ) { stage in
        let (ann, bob) = (try stage.replica("ann"), try stage.replica("bob"))
        try await ann.sync()
        try await bob.sync()
        let bobsOps = bob.opsReceived
        try await stage.change("DELETE FROM notes WHERE owner = 'ann' AND id <= 5000")
        try await eventually("the tombstones are forgotten", within: 60, every: 0.3) {
          try await stage.source.run("SELECT count(*) FROM sluice.entries WHERE data IS NULL")
            == "0"
        }
        try await stage.change("UPDATE notes SET body = 'fresh' WHERE id = 20000")
        try await ann.sync()
        let ids = try await stage.source.lines("SELECT id FROM notes WHERE owner = 'ann'")
        #expect(ann.ids("notes") == Set(ids))
        #expect(ann.resets == 1)
        #expect(ann.content["notes"]?["20000"]?["body"] == .text("fresh"))
        try await bob.sync()
        #expect(bob.opsReceived == bobsOps, "a bucket without tombstones was reset")
        #expect(stage.violations == [])
      }
    }

    @Test("other-database: positions of another database are refused and no old row is left")
    func otherDatabase() async throws {
      try await Stage.set(schema: Self.notes, rules: Self.notesByOwner) { stage in
        let ann = try stage.replica("ann")
        let copy = try stage.sqliteCopy("ann")
        try await ann.sync()
        #expect(try await copy.sync().status == 0)
        await stage.gateway.stop()
        let other = """
          CREATE TABLE notes (id int PRIMARY KEY, owner text NOT NULL, body text NOT NULL);
          INSERT INTO notes SELECT n, 'ann', 'other ' || n FROM generate_series(50, 30000, 50) AS n;
          """
        try await Stage.set(schema: other, rules: Self.notesByOwner) { second in
          await second.gateway.stop()
          try stage.gateway.point(at: second.source, rules: Self.notesByOwner, key: stage.key)
          try await stage.gateway.start()
          try await ann.sync()
          #expect(ann.ids("notes").count == 600)
          #expect(ann.content["notes"]?["50"]?["body"] == .text("other 50"))
          #expect(try await copy.sync().status == 0)
          let rows = try await copy.content(Self.noteColumns)?["notes"]
          #expect(rows == ann.content["notes"])
          await stage.gateway.stop()
        }
        #expect(stage.violations == [])
      }
    }

    @Test(
      "storm: 300 clients that reconnect at once after a restart are all current within a bound")
    func storm() async throws {
      let schema = """
        CREATE TABLE news (id int PRIMARY KEY, title text);
        INSERT INTO news SELECT n, 'news ' || n FROM generate_series(1, 50) AS n;
        """
      let rules = """
        bucket_definitions:
          news:
            data:
              - SELECT * FROM news
        """
      try await Stage.set(schema: schema, rules: rules) { stage in
        let clients = try (1...300).map { try stage.replica("reader\($0)") }
        for client in clients { client.connect() }
        try await eventually("everyone has the news", within: 90) {
          clients.allSatisfy { $0.content["news"]?.count == 50 }
        }
        await stage.gateway.kill9()
        try await stage.source.run("UPDATE news SET title = 'while away' WHERE id = 1")
        try await stage.gateway.start()
        try await stage.source.run("UPDATE news SET title = 'after' WHERE id = 2")
        let began = ContinuousClock.now
        try await eventually("everyone is current", within: 90) {
          clients.allSatisfy {
            $0.content["news"]?["1"]?["title"] == .text("while away")
              && $0.content["news"]?["2"]?["title"] == .text("after")
          }
        }
        #expect(.now - began < .seconds(60))
        #expect(clients.allSatisfy { $0.opsReceived <= 52 && $0.resets == 0 })
        #expect(stage.violations == [])
      }
    }

    @Test("slow-reader: one that crawls and one that stops cost little memory and hold nobody up")
    func slowReader() async throws {
      let schema = """
        CREATE TABLE pages (id int PRIMARY KEY, body text NOT NULL);
        INSERT INTO pages SELECT n, repeat(md5(n::text), 60) FROM generate_series(1, 20000) AS n;
        """
      let rules = """
        bucket_definitions:
          pages:
            data:
              - SELECT * FROM pages
        """
      try await Stage.set(
        schema: schema, rules: rules, settings: "streams: {slow_reader_timeout: 5s}"
      ) {
        stage in
        let good = try stage.replica("good")
        good.connect()
        try await good.shows("every page", within: 90) { $0["pages"]?.count == 20_000 }
        let before = stage.gateway.residentBytes
        let token = try stage.token("slow")
        let port = stage.gateway.port
        let crawlers = Mutex(0)
        let ended = Mutex(0)
        for reads in [1000, 0] {
          for _ in 0..<5 {
            let thread = Thread {
              crawlers.withLock { $0 += 1 }
              defer { ended.withLock { $0 += 1 } }
              guard let connection = try? WireConnection(port: port, receiveBuffer: 4096) else {
                return
              }
              try? connection.send(
                "POST", "/v1/stream", token: token, body: #"{"client_id":"slow","buckets":{}}"#)
              for _ in 0..<600 {
                Thread.sleep(forTimeInterval: 0.1)
                if reads > 0 {
                  if !connection.drain(reads / 10) { return }
                } else if connection.isPeerGone {
                  return
                }
              }
            }
            thread.start()
          }
        }
        var peak = before
        for number in 1...30 {
          try await stage.source.run("UPDATE pages SET body = 'short \(number)' WHERE id = 1")
          let began = ContinuousClock.now
          try await good.shows("change \(number)") {
            $0["pages"]?["1"]?["body"] == .text("short \(number)")
          }
          #expect(.now - began < .seconds(3))
          peak = max(peak, stage.gateway.residentBytes)
        }
        // 40 MB of pages wait for each of ten readers; what is held for one is bounded.
        #expect(peak - before < 100 << 20, "grew by \((peak - before) >> 20) MB")
        try await eventually("the readers that stopped are closed", within: 60) {
          ended.withLock { $0 } >= 5
        }
        #expect(stage.violations == [])
      }
    }
  }
}
