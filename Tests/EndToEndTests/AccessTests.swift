import Foundation
import Synchronization
import Testing

extension EndToEnd {
  /// Nobody receives what the rules do not give him, and what they stop giving leaves his replica.
  @Suite(.serialized) struct Access {
    static let teams = """
      CREATE TABLE memberships (id serial PRIMARY KEY, user_id text NOT NULL, team_id int NOT NULL);
      CREATE TABLE cards (id int PRIMARY KEY, team_id int NOT NULL, title text);
      CREATE INDEX ON cards (team_id);
      INSERT INTO memberships (user_id, team_id) VALUES ('ann', 1), ('ann', 2), ('bob', 2), ('eve', 3);
      INSERT INTO cards SELECT n, 1 + n % 3, 'card ' || n FROM generate_series(1, 300) AS n;
      """
    static let cardsByTeam = """
      bucket_definitions:
        team:
          parameters: SELECT team_id FROM memberships WHERE user_id = request.user_id()
          data:
            - SELECT * FROM cards WHERE team_id = bucket.team_id
      """

    @Test("revoked-offline: rows of a membership removed meanwhile are gone at the next checkpoint")
    func revokedOffline() async throws {
      try await Stage.set(schema: Self.teams, rules: Self.cardsByTeam) { stage in
        let counts = Mutex<[Int]>([])
        let ann = try stage.replica("ann") { _, content in
          counts.withLock { $0.append(content["cards"]?.count ?? 0) }
        }
        try await ann.sync()
        #expect(ann.ids("cards").count == 200)
        let kept = ann.content["cards"]?.filter { $0.value["team_id"] == .number("2") }
        let ops = ann.opsReceived
        try await stage.change("DELETE FROM memberships WHERE user_id = 'ann' AND team_id = 1")
        try await ann.sync()
        #expect(ann.content["cards"] == kept)
        #expect(kept?.count == 100)
        #expect(counts.withLock { $0 } == [200, 100])
        #expect(ann.opsReceived == ops, "the team that stays was sent again")

        let bob = try stage.replica("bob")
        bob.connect()
        try await bob.shows("team 2") { $0["cards"]?.count == 100 }
        try await stage.source.run("INSERT INTO memberships (user_id, team_id) VALUES ('bob', 1)")
        try await bob.shows("team 1 as well") { $0["cards"]?.count == 200 }
        try await stage.source.run("DELETE FROM memberships WHERE user_id = 'bob' AND team_id = 2")
        try await bob.shows("team 1 alone") { content in
          content["cards"]?.count == 100
            && content["cards"]?.values.allSatisfy { $0["team_id"] == .number("1") } == true
        }
        #expect(stage.violations == [])
      }
    }

    @Test("disjoint-users: of a row that belongs to one, the other receives not even the key")
    func disjointUsers() async throws {
      try await Stage.set(schema: Self.teams, rules: Self.cardsByTeam) { stage in
        let (bob, eve) = (try stage.replica("bob"), try stage.replica("eve"))
        bob.connect()
        eve.connect()
        try await bob.shows("team 2") { $0["cards"]?.count == 100 }
        try await eve.shows("team 3") { $0["cards"]?.count == 100 }
        let (received, buckets) = (eve.keysReceived, eve.buckets)
        let bytes = eve.bytesReceived
        try await stage.source.run("DELETE FROM cards WHERE team_id = 2")
        try await bob.shows("nothing") { $0["cards"] == nil }
        try await stage.source.run("INSERT INTO cards VALUES (1000, 2, 'secret')")
        try await bob.shows("the secret") { $0["cards"]?.count == 1 }
        await pause(0.3)
        #expect(eve.keysReceived == received)
        #expect(eve.buckets == buckets)
        #expect(eve.bytesReceived - bytes < 2000, "more than checkpoints and keepalives")
        #expect(!eve.keysReceived.contains("cards/1000"))
        #expect(stage.violations == [])
      }
    }

    @Test("no-ghost-tombstone: a row created and deleted between two syncs never appears")
    func noGhostTombstone() async throws {
      try await Stage.set(schema: Self.teams, rules: Self.cardsByTeam) { stage in
        let bob = try stage.replica("bob")
        try await bob.sync()
        try await stage.change("INSERT INTO cards VALUES (2000, 2, 'ghost')")
        try await stage.change("DELETE FROM cards WHERE id = 2000")
        try await stage.source.run(
          "BEGIN; INSERT INTO cards VALUES (2001, 2, 'brief'); DELETE FROM cards WHERE id = 2001; COMMIT;"
        )
        try await bob.sync()
        #expect(bob.ids("cards").count == 100)
        #expect(!bob.keysReceived.contains("cards/2001"))
        let fresh = try stage.replica("bob")
        try await fresh.sync()
        #expect(fresh.ids("cards") == bob.ids("cards"))
        #expect(fresh.content == bob.content)
        #expect(stage.violations == [])
      }
    }

    @Test(
      "token-expiry: an expired token ends the stream; with a new one it goes on from its position")
    func tokenExpiry() async throws {
      try await Stage.set(schema: Self.teams, rules: Self.cardsByTeam) { stage in
        // The gateway allows for clocks a minute apart: this one is over two seconds from now.
        let asked = Mutex(0)
        let short = try SignedToken.make(user: "bob", lifetime: -58, key: stage.key)
        let long = try SignedToken.make(user: "bob", lifetime: 3600, key: stage.key)
        let bob = try stage.replica(
          "bob",
          token: {
            asked.withLock { $0 += 1 }
            return asked.withLock { $0 } == 1 ? short : long
          })
        bob.connect()
        try await bob.shows("team 2") { $0["cards"]?.count == 100 }
        let ops = bob.opsReceived
        try await eventually("the stream is renewed", within: 20) { asked.withLock { $0 } >= 2 }
        try await stage.source.run("INSERT INTO cards VALUES (3000, 2, 'after')")
        try await bob.shows("the row after the renewal") { $0["cards"]?.count == 101 }
        #expect(bob.opsReceived == ops + 1)
        #expect(bob.connections == 2)
        let old = try SignedToken.make(user: "bob", lifetime: -3600, key: stage.key)
        let refused = try await HTTP.get(port: stage.gateway.port, "/v1/buckets", token: old)
        #expect(refused.status == 401)
        #expect(stage.violations == [])
      }
    }

    @Test(
      "path-and-parameters: crafted paths, parameters and claims are refused or are only values")
    func pathAndParameters() async throws {
      try await Stage.set(schema: Self.teams, rules: Self.cardsByTeam) { stage in
        let port = stage.gateway.port
        let token = try stage.token("ann")
        let targets = [
          "//v1/buckets", "/v1//buckets", "/v1/buckets/", "/v1/%62uckets/..", "/v1/buckets/%",
          "/v1/buckets/%zz/rows", "/v1/buckets/../schema", "/v1/buckets/%2e%2e/rows",
          "/v1/buckets/%00/rows", "/v1/buckets/%C0%AF/rows", "/v1/buckets/team%5B3%5D/rows",
          "/v1/buckets/team%5B1%5D/rows?after=';--", "/v1/buckets/team%5B1%5D/rows?after=1,2,3,4",
          "/v1/buckets/team%5B1%5D/rows?limit=-1", "/v1/buckets/team%5B1%5D/rows?limit=1e9",
          "/v1/buckets/team%5B1%5D/rows?after=2026-11-30T02:05:11.123456Z,99999999999999999999",
          "/v1/buckets/team%5B1%20OR%201=1%5D/rows", "/v1/nothing", "/", "/v1/stream?x=%",
        ]
        for target in targets {
          let answer = try await HTTP.get(port: port, target, token: token)
          #expect((400..<500).contains(answer.status), "\(target): \(answer.status)")
          expectNoLeak(answer.body, target)
        }
        let bodies = [
          "", "{", "[]", "null", #"{"buckets":[]}"#, #"{"client_id":5}"#,
          #"{"client_id":"c","buckets":{"team[1]":"x"}}"#,
          #"{"client_id":"c","buckets":{"team[1]":"2026-11-30T02:05:11.123456Z,'; DROP TABLE cards;--,0"}}"#,
          #"{"client_id":"c","parameters":"\ud800"}"#, String(repeating: "[", count: 100_000),
          #"{"client_id":"c","parameters":[1]}"#,
        ]
        for body in bodies {
          let answer = try await HTTP.send(
            port: port, "POST", "/v1/stream", token: token, body: body)
          #expect((400..<500).contains(answer.status), "\(body.prefix(60)): \(answer.status)")
          expectNoLeak(answer.body, String(body.prefix(60)))
        }
        for bad in [
          nil, "", "x", "a.b.c", token + "x", token.replacingOccurrences(of: ".", with: ".."),
        ] {
          let answer = try await HTTP.get(port: port, "/v1/buckets", token: bad)
          #expect(answer.status == 401)
        }
        let expiry = Int(Date.now.timeIntervalSince1970) + 600
        for subject in [
          #""\"'; drop table cards; --""#, #""ann' OR '1'='1""#, "[\"ann\"]", "{\"ann\":1}",
          "123456789012345678901234567890", "1e400", "\"\\u0000\"", "\"\\ud800\"", "true", "null",
          #""%""#, #""ann ""#, #""ANN""#, #""ann\u0000""#,
        ] {
          let crafted = SignedToken.make(
            payload: #"{"sub":\#(subject),"aud":"test","exp":\#(expiry)}"#, key: stage.key)
          let answer = try await HTTP.get(port: port, "/v1/buckets", token: crafted)
          #expect(answer.status < 500, "\(subject): \(answer.status)")
          expectNoLeak(answer.body, subject)
          if answer.status == 200 {
            #expect(
              (answer.json["buckets"] as? [Any])?.isEmpty == true, "\(subject): \(answer.body)")
          }
        }
        let none =
          SignedToken.encode(Array(#"{"alg":"none"}"#.utf8)) + "."
          + SignedToken.encode(Array(#"{"sub":"ann","aud":"test","exp":\#(expiry)}"#.utf8)) + "."
        #expect(try await HTTP.get(port: port, "/v1/buckets", token: none).status == 401)
        #expect(try await stage.source.run("SELECT count(*) FROM cards") == "300")
      }
    }

    private func expectNoLeak(_ body: String, _ what: String) {
      for word in ["SELECT", "syntax error", "pg_catalog", "sluice.", "card ", "WHERE"] {
        #expect(!body.contains(word), "\(what) is answered with \(body)")
      }
    }

    @Test("noisy-neighbour: a tenant with 100,000 parameter rows does not touch one with three")
    func noisyNeighbour() async throws {
      try await Stage.set(schema: Self.teams, rules: Self.cardsByTeam) { stage in
        let bob = try stage.replica("bob")
        bob.connect()
        try await bob.shows("team 2") { $0["cards"]?.count == 100 }
        try await stage.source.run(
          "INSERT INTO memberships (user_id, team_id) SELECT 'big', 1000 + n FROM generate_series(1, 100000) AS n"
        )
        let big = try stage.replica("big")
        big.connect()
        try await eventually("the big tenant is told why", within: 30) {
          big.lastStatus >= 400 || big.lastError?.contains("SLUICE_") == true
        }
        var slowest = Duration.zero
        for number in 1...20 {
          let began = ContinuousClock.now
          try await stage.source.run("UPDATE cards SET title = 'n\(number)' WHERE id = 1")
          try await bob.shows("n\(number)") { $0["cards"]?["1"]?["title"] == .text("n\(number)") }
          slowest = max(slowest, .now - began)
        }
        #expect(slowest < .seconds(3))
        let fresh = try stage.replica("bob")
        let began = ContinuousClock.now
        try await fresh.sync()
        #expect(.now - began < .seconds(3))
        #expect(fresh.content == bob.content)
        #expect(big.content.isEmpty)
        #expect(stage.violations == [])
      }
    }
  }
}
