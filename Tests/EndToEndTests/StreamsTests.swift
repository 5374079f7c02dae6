import Foundation
import Synchronization
import Testing

extension EndToEnd {
  /// Streams with the real gateway: chains of lookups, and subscriptions.
  @Suite(.serialized) struct Streams {
    private static let schema = """
      CREATE TABLE organisations (id text PRIMARY KEY, name text);
      CREATE TABLE members (id text PRIMARY KEY, organisation_id text, user_id text, active boolean NOT NULL);
      CREATE TABLE projects (id text PRIMARY KEY, organisation_id text, name text, archived boolean NOT NULL);
      CREATE TABLE tasks (id text PRIMARY KEY, project_id text, assignee_id text, watchers jsonb, title text, state text);
      CREATE TABLE comments (id text PRIMARY KEY, task_id text, project_id text, body text);
      CREATE TABLE templates (id text PRIMARY KEY, name text, kind text);
      INSERT INTO organisations VALUES ('o1', 'one'), ('o2', 'two');
      INSERT INTO members VALUES ('m1', 'o1', 'ann', true), ('m2', 'o2', 'bob', true), ('m3', 'o2', 'ann', false);
      INSERT INTO projects VALUES ('p1', 'o1', 'first', false), ('p2', 'o2', 'second', false), ('p3', 'o1', 'third', false);
      INSERT INTO tasks SELECT 't' || i, 'p' || 1 + i % 3, CASE i % 5 WHEN 0 THEN 'ann' WHEN 1 THEN 'bob' END,
        CASE i % 4 WHEN 0 THEN '["ann"]' WHEN 1 THEN '["bob","ann"]' END::jsonb, 'task ' || i,
        CASE WHEN i % 7 = 0 THEN 'done' ELSE 'open' END FROM generate_series(1, 60) i;
      INSERT INTO comments SELECT 'c' || i, 't' || i, 'p' || 1 + i % 3, 'hm' FROM generate_series(1, 60) i;
      INSERT INTO templates VALUES ('x', 'note', 'public'), ('y', 'plan', 'internal');
      """

    /// The example that the repository shows.
    private static func example() throws -> String {
      let file = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../rules/projects.yaml").standardizedFileURL
      return try String(contentsOf: file, encoding: .utf8)
    }

    /// What somebody who subscribes to `projects` must see, by the tables themselves.
    private static func expected(
      _ user: String, projects: [String], _ source: Source
    ) async throws -> [String: Set<String>] {
      let list = projects.map { "'\($0)'" }.joined(separator: ",")
      let orgs =
        "(SELECT m.organisation_id FROM members m WHERE m.user_id = '\(user)' AND m.active)"
      let open =
        "(SELECT p.id FROM projects p WHERE p.organisation_id IN \(orgs) AND NOT p.archived)"
      let asked = "project_id IN (\(list)) AND project_id IN \(open)"
      let queries = [
        "organisations": "SELECT id FROM organisations WHERE id IN \(orgs)",
        "members": "SELECT id FROM members WHERE organisation_id IN \(orgs) AND active",
        "projects": "SELECT id FROM projects WHERE organisation_id IN \(orgs) AND NOT archived",
        "tasks": "SELECT id FROM tasks WHERE \(asked)",
        "comments": "SELECT id FROM comments WHERE \(asked)",
        "waiting": "SELECT id FROM tasks WHERE (assignee_id = '\(user)' OR watchers ? '\(user)') "
          + "AND state IS DISTINCT FROM 'done'",
        "templates": "SELECT id FROM templates WHERE kind IN ('public', 'starter')",
      ]
      var expected: [String: Set<String>] = [:]
      for (table, query) in queries {
        let ids = Set(try await source.lines(query))
        if !ids.isEmpty { expected[table] = ids }
      }
      return expected
    }

    private static func ids(_ content: Content) -> [String: Set<String>] {
      content.mapValues { Set($0.keys) }
    }

    @Test("a change in the middle of a chain moves rows in one checkpoint, whomever it concerns")
    func chain() async throws {
      try await Stage.set(schema: Self.schema, rules: Self.example()) { stage in
        let shown = Mutex<[Content]>([])
        let ann = try stage.replica("ann") { _, content in shown.withLock { $0.append(content) } }
        let bob = try stage.replica("bob")
        let subscriptions = ["p1", "p2"].map {
          #"{"stream":"project","parameters":{"project":"\#($0)"}}"#
        }
        for replica in [ann, bob] {
          replica.subscribe("[\(subscriptions.joined(separator: ","))]")
          replica.connect()
        }
        func check(_ what: String) async throws {
          for replica in [ann, bob] {
            let expected = try await Self.expected(
              replica.name, projects: ["p1", "p2"], stage.source)
            try await replica.shows(what) { Self.ids($0) == expected }
          }
        }
        try await check("its organisation")
        #expect(ann.ids("tasks").count == 20)
        let changes = [
          // The project goes to the other organisation, and a task with it in the same transaction.
          """
          BEGIN; UPDATE projects SET organisation_id = 'o2' WHERE id = 'p1';
          INSERT INTO tasks VALUES ('t100', 'p1', NULL, NULL, 'moved', 'open'); COMMIT
          """,
          "UPDATE members SET active = true WHERE id = 'm3'",
          "UPDATE projects SET archived = true WHERE id = 'p2'",
          "BEGIN; DELETE FROM members WHERE user_id = 'bob'; UPDATE projects SET archived = false; COMMIT",
          "UPDATE tasks SET project_id = 'p3', watchers = '[\"bob\"]' WHERE id IN ('t1', 't2', 't3')",
        ]
        for change in changes {
          try await stage.change(change)
          try await check("the state after: \(change)")
        }
        // A project and its tasks come and go together: no checkpoint shows one without the other.
        for content in shown.withLock({ $0 }) {
          for project in ["p1", "p2"] {
            let hasTasks = content["tasks"]?.values.contains { $0["project_id"] == .text(project) }
            #expect((hasTasks ?? false) == (content["projects"]?[project] != nil), "\(project)")
          }
        }
        #expect(stage.violations == [])
        let verified = try await stage.verify()
        #expect(verified.status == 0, "\(verified.output)")
      }
    }

    @Test("why and explain follow a chain, and say where it ends for somebody")
    func why() async throws {
      try await Stage.set(schema: Self.schema, rules: Self.example()) { stage in
        let configuration = ["--config", stage.gateway.configuration.path]
        let subscription = ["--subscribe", "project?project=p1"]
        // Comment 3 is of p1, of the first organisation, whose member is ann.
        func why(_ user: String) async throws -> (Int32, String) {
          let result = try await run(
            "sluice",
            ["why", "--row", "comments/c3", "--user", user] + subscription + configuration)
          return (result.status, result.output + result.error)
        }
        let (held, reason) = try await why("ann")
        #expect(held == 0 && reason.contains(#"project|0["p1"]"#), "\(reason)")
        let (refused, hindrance) = try await why("bob")
        #expect(refused == 1 && hindrance.contains("may not hold it"), "\(hindrance)")
        let explained = try await run(
          "sluice", ["explain", "--user", "ann"] + subscription + configuration)
        #expect(explained.status == 0, "\(explained.output)\(explained.error)")
        #expect(
          explained.output.contains(#"project|0["p1"]  priority 3  40 rows  by subscription 1"#),
          "\(explained.output.suffix(1500))")
      }
    }

    private static let lists = """
      config: { edition: 3 }
      streams:
        mine:
          auto_subscribe: true
          query: SELECT id, project_id, title FROM tasks AS mine WHERE assignee_id = auth.user_id()
        several:
          accept_potentially_dangerous_queries: true
          query: SELECT id, project_id, title FROM tasks WHERE project_id IN subscription.parameter('projects')
      """

    @Test("what is subscribed to comes, what no longer is goes; a bad one stops no other")
    func subscriptions() async throws {
      try await Stage.set(schema: Self.schema, rules: Self.lists) { stage in
        let ann = try stage.replica("ann")
        try await ann.sync()
        #expect(Set(ann.content.keys) == ["mine"])
        #expect(ann.content["mine"]?.count == 12)
        let kept = ann.opsReceived

        ann.subscribe(
          """
          [{"stream":"several","parameters":{"projects":["p1","p2"]}},
           {"stream":"several","parameters":{"projects":"p3"}},
           {"stream":"several","parameters":{}},
           {"stream":"sevral","parameters":{}}]
          """)
        ann.connect()
        try await ann.shows("two projects") { $0["tasks"]?.count == 40 }
        #expect(ann.troubles == ["1 SLUICE_STREAM_VALUE", "3 SLUICE_STREAM_UNKNOWN"])
        #expect(ann.opsReceived == kept + 40, "what was there already was sent again")
        try await stage.source.run("UPDATE tasks SET project_id = 'p1' WHERE id = 't2'")
        try await ann.shows("a row that came to a project") {
          $0["tasks"]?.count == 41 && $0["tasks"]?["t2"]?["project_id"] == .text("p1")
        }
        ann.disconnect()

        ann.subscribe(#"[{"stream":"several","parameters":{"projects":["p2"]}}]"#)
        ann.connect()
        try await ann.shows("one project") { content in
          content["tasks"]?.count == 20
            && content["tasks"]?.values.allSatisfy { $0["project_id"] == .text("p2") } == true
        }
        #expect(ann.troubles == [])
        #expect(ann.content["mine"]?.count == 12)
        #expect(stage.violations == [])
      }
    }

    @Test("the replica on disk follows its subscriptions, and says which one is wrong")
    func subscribedFile() async throws {
      try await Stage.set(schema: Self.schema, rules: Self.lists) { stage in
        let copy = try stage.sqliteCopy("ann")
        let tables = ["mine": ["title"], "tasks": ["project_id"]]
        let first = try await copy.sync(subscribing: [#"several?projects=["p1","p3"]"#])
        #expect(first.status == 0, "\(first.output)")
        var content = try #require(try await copy.content(tables))
        #expect(content["mine"]?.count == 12)
        #expect(content["tasks"]?.count == 40)

        let second = try await copy.sync(subscribing: ["several?projects=p1"])
        #expect(second.output.contains("several"), "\(second.output)")
        #expect(second.output.contains("JSON"), "\(second.output)")
        content = try #require(try await copy.content(tables))
        #expect(content["mine"]?.count == 12)
        #expect(content["tasks"] == nil)
      }
    }
  }
}
