import Foundation
import TestSupport
import Testing

/// The rules files that the repository shows as examples.
private enum ExampleRules {
  static let projectFolder = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  static let names: [String] = {
    let folder = projectFolder.appending(path: "rules").path
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return files.filter { $0.hasSuffix(".yaml") && !$0.hasSuffix(".test.yaml") }.sorted()
  }()
}

extension EndToEnd {
  /// The commands as a user meets them: what they accept, what they say, and how they end.
  @Suite(.serialized) struct Commands {
    @Test(
      "every example in rules/ is accepted, and gives what its tests say",
      arguments: ExampleRules.names)
    func examples(name: String) async throws {
      let file = ExampleRules.projectFolder.appending(path: "rules/\(name)").path
      let result = try await run("sluice", ["check", file])
      #expect(result.status == 0, "\(result.output)\(result.error)")
      let database = try await PostgresCluster.shared.createDatabase()
      let tested = try await run(
        "sluice", ["check", file, "--test", "--database", database.connectionString])
      #expect(tested.status == 0, "\(tested.output)\(tested.error)")
      #expect(tested.output.contains("all passed"))
      try await database.drop()
    }

    @Test(
      "the field-service rules fit the field-service tables, and a misspelt column is pointed at")
    func fieldService() async throws {
      let database = try await PostgresCluster.shared.createDatabase()
      let source = Source(connectionString: database.connectionString)
      let schema = ExampleRules.projectFolder.appending(path: "deploy/field-service/schema.sql")
      try await source.run(try String(contentsOf: schema, encoding: .utf8))
      let rules = ExampleRules.projectFolder.appending(path: "rules/field-service.yaml")
      let good = try await run(
        "sluice", ["check", rules.path, "--database", database.connectionString])
      #expect(good.status == 0, "\(good.output)\(good.error)")

      let misspelt = try String(contentsOf: rules, encoding: .utf8)
        .replacingOccurrences(
          of: "SELECT id, title, pages FROM", with: "SELECT id, titel, pages FROM")
      let line = misspelt.split(separator: "\n", omittingEmptySubsequences: false)
        .firstIndex { $0.contains("titel") }
      let file = try Workspace.shared.folder("rules").appending(path: "misspelt.yaml")
      try Data(misspelt.utf8).write(to: file)
      let bad = try await run(
        "sluice", ["check", file.path, "--database", database.connectionString])
      // A column that may yet come is NULL until then; that is worth a warning and no refusal.
      #expect(bad.status == 0)
      let said = bad.output + bad.error
      #expect(said.contains("misspelt.yaml:\((line ?? 0) + 1):"), "\(said)")
      #expect(said.contains("titel"))
      try await database.drop()
    }

    @Test("a dry run says what widens access, and changes nothing")
    func dryRun() async throws {
      try await Stage.set(schema: Access.teams, rules: Access.cardsByTeam) { stage in
        let wider = try Workspace.shared.folder("rules").appending(path: "wider.yaml")
        let rules = Access.cardsByTeam.replacing(
          " WHERE user_id = request.user_id()", with: "")
        try Data(rules.utf8).write(to: wider)
        let result = try await run(
          "sluice",
          ["deploy", wider.path, "--dry-run", "--config", stage.gateway.configuration.path])
        #expect(result.status == 0, "\(result.error)")
        #expect(result.output.contains("team  changed: 3 buckets, 300 rows are sent anew"))
        #expect(
          result.output.contains(
            "  ! who gets it: no longer requires memberships.user_id = request.user_id()"))
        #expect(result.output.contains("! 1 change lets somebody have more than before"))
        let eve = try stage.replica("eve")
        try await eve.sync()
        #expect(eve.ids("cards").count == 100)
      }
    }

    @Test("a test that fails says at which line what differs, and the throw-away database goes")
    func failingRulesTests() async throws {
      let database = try await PostgresCluster.shared.createDatabase()
      let folder = try Workspace.shared.folder("rules-tests")
      let rules = folder.appending(path: "r.yaml")
      try Data(
        """
        bucket_definitions:
          mine:
            parameters: SELECT request.user_id() AS u
            data: ['SELECT id, title, done FROM t WHERE owner = bucket.u']
        """.utf8
      ).write(to: rules)
      func check(_ tests: String) async throws -> (Int32, String) {
        let file = folder.appending(path: "r.test.yaml")
        try Data(tests.utf8).write(to: file)
        let result = try await run(
          "sluice", ["check", rules.path, "--test", "--database", database.connectionString])
        return (result.status, result.output + result.error)
      }
      let tables = """
        schema: CREATE TABLE t (id int PRIMARY KEY, owner text, title text, done boolean)
        rows: {t: [{id: 1, owner: ann, title: one, done: true}, {id: 2, owner: ann}]}
        tests:

        """
      let (failed, differences) = try await check(
        tables + """
          - name: wrong in every way
            user: ann
            expect:
              buckets: ['mine["bob"]']
              rows:
                t: [{id: 1, title: two, done: true}, 3]
                u: []
          - {name: right, user: bob, expect: {rows: {t: []}}}
          """)
      #expect(failed == 1)
      for line in [
        "r.test.yaml:7: the bucket mine[\"bob\"] is missing",
        "r.test.yaml:4: the bucket mine[\"ann\"] was not expected",
        "r.test.yaml:9: t 1: title is \"one\", not \"two\"", "r.test.yaml:9: t 3 is missing",
        "r.test.yaml:9: t 2 was not expected", "r.test.yaml:10: replicas have no table u",
        "ok     right", "2 tests, 1 failed",
      ] { #expect(differences.contains(line), "\(line) is not in \(differences)") }
      #expect(!differences.contains("done is"))

      for (tests, message) in [
        ("tests: []", "schema is missing"), (tables, "tests are missing"),
        (tables + "- {name: a}", "expects nothing"),
        (tables + "- {name: a, usr: b, expect: {buckets: []}}", "did you mean 'user'?"),
        (
          tables.replacing("owner: ann}]", with: "ownr: ann}]")
            + "- {name: a, expect: {buckets: []}}", "r.test.yaml:2: a row of t: column \"ownr\""
        ),
        (
          tables.replacing("CREATE TABLE t", with: "CREATE TABEL t")
            + "- {name: a, expect: {buckets: []}}", "schema: syntax error"
        ),
        (
          tables + "- {name: a, change: DELETE FROM nothing, expect: {buckets: []}}",
          "the change of \"a\": relation \"nothing\" does not exist"
        ),
      ] {
        let (status, said) = try await check(tests)
        #expect(status == 1, "\(said)")
        #expect(said.contains(message), "\(message) is not in \(said)")
      }
      let source = Source(connectionString: database.connectionString)
      #expect(
        try await source.lines(
          "SELECT datname FROM pg_database WHERE datname LIKE 'sluice\\_check%'") == [])
      try await database.drop()
    }

    @Test("wrong usage ends with 2, an unreachable database with 3, bad rules with 1")
    func exitStatuses() async throws {
      let folder = try Workspace.shared.folder("commands")
      let rules = folder.appending(path: "rules.yaml")
      try Data("bucket_definitions:\n  all:\n    dataa: []\n".utf8).write(to: rules)
      let configuration = folder.appending(path: "sluice.yaml")
      try Data(
        """
        database: postgresql:///none?host=\(folder.path)
        rules: rules.yaml
        auth: {audience: [a], keys: [{kid: k, kty: oct, alg: HS256, k: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}]}
        """.utf8
      ).write(to: configuration)
      let unknown = folder.appending(path: "unknown.yaml")
      try Data("databse: postgresql:///x\n".utf8).write(to: unknown)

      for (arguments, status) in [
        ([], 2), (["serv"], 2), (["check"], 2), (["check", rules.path, "--nonsense"], 2),
        (["check", rules.path], 1), (["check", folder.path + "/absent.yaml"], 2),
        (["status", "--config", configuration.path], 3),
        (["verify", "--config", configuration.path], 3),
        (["serve", "--config", unknown.path], 2), (["--help"], 0), (["serve", "--help"], 0),
      ] as [([String], Int32)] {
        let result = try await run("sluice", arguments)
        #expect(result.status == status, "sluice \(arguments): \(result.output)\(result.error)")
      }
      let misspelt = try await run(
        "sluice", ["status", "--config", configuration.path],
        environment: ["SLUICE_LISTN": "127.0.0.1:1"])
      #expect(misspelt.status == 2)
      #expect(misspelt.error.contains("did you mean SLUICE_LISTEN?"), "\(misspelt.error)")
      let replica = try await run("sluice-replica", ["sync"])
      #expect(replica.status == 2, "\(replica.error)")
      let port = try FreePort.next()
      let unreachable = try await run(
        "sluice-replica",
        [
          "sync", "--url", "http://127.0.0.1:\(port)", "--token", "a.b.c",
          "--db", folder.path + "/r.db",
        ])
      #expect(unreachable.status == 3, "\(unreachable.output)\(unreachable.error)")
    }

    @Test("verify notices a single entry that was tampered with, and an entry that is missing")
    func verifyNotices() async throws {
      try await Stage.set(
        schema: Access.teams, rules: Access.cardsByTeam
      ) { stage in
        #expect(try await stage.verify().status == 0)
        await stage.gateway.stop()
        try await stage.source.run(
          """
          UPDATE sluice.entries SET data = replace(data, 'card 7', 'card x')
          WHERE data LIKE '%"card 7"%'
          """)
        #expect(try await stage.verify().status == 1)
        try await stage.source.run(
          """
          UPDATE sluice.entries SET data = replace(data, 'card x', 'card 7')
          WHERE data LIKE '%"card x"%'
          """)
        #expect(try await stage.verify().status == 0)
        try await stage.source.run("DELETE FROM sluice.entries WHERE data LIKE '%\"card 8\"%'")
        #expect(try await stage.verify().status == 1)
      }
    }

    @Test("why says who may hold a row, and what keeps it from somebody")
    func why() async throws {
      try await Stage.set(schema: Access.teams, rules: Access.cardsByTeam) { stage in
        // Card 7 is of team 2, whose members are ann and bob.
        let configuration = ["--config", stage.gateway.configuration.path]
        func why(_ arguments: String...) async throws -> (Int32, String) {
          let result = try await run("sluice", ["why", "--row"] + arguments + configuration)
          return (result.status, result.output + result.error)
        }
        let (status, all) = try await why("cards/7")
        #expect(status == 0)
        #expect(all.contains("in bucket team[2]"))
        #expect(all.contains("whoever has request.user_id() = \"ann\""))
        #expect(all.contains("whoever has request.user_id() = \"bob\""))
        #expect(!all.contains("\"eve\""))
        #expect(try await why("cards/7", "--user", "bob").0 == 0)
        let (refused, eve) = try await why("cards/7", "--user", "eve")
        #expect(refused == 1)
        #expect(eve.contains("eve may not hold it"))
        #expect(eve.contains("it leads elsewhere: [3]"))
        let (misspelt, advice) = try await why("card/7")
        #expect(misspelt == 2)
        #expect(advice.contains("Did you mean cards?"))
        let (noKey, reason) = try await why("cards/seven")
        #expect(noKey == 2)
        #expect(reason.contains("Its key is id int4"))
        #expect(try await why("cards/7000").0 == 1)
      }
    }

    @Test("a token that sluice signed is accepted, and SIGTERM ends the gateway with 0")
    func tokenAndStop() async throws {
      try await Stage.set(schema: Access.teams, rules: Access.cardsByTeam) { stage in
        let signed = try await run(
          "sluice",
          [
            "token", "--config", stage.gateway.configuration.path, "--user", "bob", "--ttl", "5m",
          ])
        #expect(signed.status == 0, "\(signed.error)")
        let token = signed.output.trimmingCharacters(in: .whitespacesAndNewlines)
        let buckets = try await HTTP.get(
          port: stage.gateway.port, "/v1/buckets", token: token)
        #expect(buckets.status == 200)
        let names = (buckets.json["buckets"] as? [[String: Any]])?.map { $0["name"] as? String }
        #expect(names == ["team[2]"])
        let bob = try stage.replica("bob")
        bob.connect()
        try await bob.shows("team 2") { $0["cards"]?.count == 100 }
        #expect(await stage.gateway.stop() == 0)
      }
    }
  }
}
