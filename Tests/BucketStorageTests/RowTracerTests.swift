import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// Why a row is where it is, told by rules small enough to know the answer by reading them.
@Suite struct RowTracerTests {
  private static let tables = """
    CREATE TABLE members (person text, team int, since date, PRIMARY KEY (person, team));
    CREATE TABLE cards (id int PRIMARY KEY, team int, title text, tags jsonb, hidden boolean);
    INSERT INTO members VALUES ('ann', 1, '2026-01-01'), ('bob', 1, '2026-01-02'), ('bob', 2, '2026-01-03');
    INSERT INTO cards VALUES (10, 1, 'ten', '["red", "new"]', false), (20, 2, 'twenty', '[]', true);
    """

  private static let yaml = """
    bucket_definitions:
      team:
        parameters: SELECT team FROM members WHERE person = request.user_id()
        data:
          - SELECT id, title FROM cards WHERE team = bucket.team AND NOT hidden
      tag:
        parameters: SELECT value AS tag FROM json_each(request.jwt() -> 'tags')
        data:
          - SELECT id, title FROM cards AS tagged WHERE bucket.tag IN tags
      office:
        parameters: SELECT WHERE request.jwt() ->> 'role' = 'office'
        data:
          - SELECT id, title FROM cards AS all_cards
          - SELECT person || '/' || team AS id, since FROM members
    """

  /// Lends a stage on which the rules serve, and the tracer for them.
  private func traced(
    _ tables: String = Self.tables, _ yaml: String = Self.yaml,
    _ body: @escaping @Sendable (Stage, Question) async throws -> Void
  ) async throws {
    try await withStage(tables, nil) { stage in
      let catalog = try await CatalogReader().read(stage.app)
      let (rules, _) = RulesReader.read(yaml, fileName: "rules.yaml")
      let (plan, _) = PlanCompiler.compile(try #require(rules), catalog)
      let compiled = SQLGenerator.compile(try #require(plan))
      try await stage.deploy(compiled)
      let connection = try await stage.database.connect(settings: RowTracer.settings)
      let question = Question(
        plan: try #require(plan), tracer: RowTracer(plan: try #require(plan), rules: compiled),
        connection: connection)
      do {
        try await body(stage, question)
        await connection.close()
      } catch {
        await connection.close()
        throw error
      }
    }
  }

  struct Question: Sendable {
    let plan: SyncPlan
    let tracer: RowTracer
    let connection: PostgresConnection

    func callAsFunction(
      _ table: String, _ key: [String], claims: String? = nil, subscriptions: String = "[]"
    ) async throws -> RowReport {
      let place = try #require(plan.sources.firstIndex { $0.name == table })
      let request = claims.map {
        RequestContext(claimsJSON: $0, subscriptionsJSON: subscriptions)
      }
      return try await tracer.trace(table: place, key: key, for: request, connection)
    }
  }

  private func names(_ report: RowReport, _ definition: String) -> [String] {
    report.ways.filter { $0.definition == definition }.flatMap { $0.buckets.map(\.name) }
  }

  @Test("of a row in several buckets, each is named with those who may hold it")
  func holders() async throws {
    try await traced { _, why in
      let report = try await why("cards", ["10"])
      #expect(report.exists)
      #expect(!report.isPending)
      #expect(names(report, "team") == ["team[1]"])
      #expect(Set(names(report, "tag")) == ["tag[\"red\"]", "tag[\"new\"]"])
      #expect(names(report, "office") == ["office[]"])
      #expect(report.ways.allSatisfy { $0.buckets.allSatisfy { $0.isGiven && $0.isStored } })
      let team = try #require(report.ways[0].buckets.first?.holders?.first)
      #expect(
        Set(team.requests.map { $0.map(\.json) }) == [["\"ann\""], ["\"bob\""]])
      #expect(team.requests[0][0].name == "request.user_id()")
      let office = try #require(report.ways[2].buckets.first?.holders?.first)
      #expect(office.requests == [[]])
      #expect(office.conditions == ["request.jwt() ->> 'role' = 'office'"])
      let red = try #require(report.ways[1].buckets.first { $0.name == "tag[\"red\"]" })
      #expect(red.holders?.first?.requests.first?.map(\.json) == ["\"red\""])
      #expect(
        red.holders?.first?.requests.first?.map(\.name)
          == ["an element of request.jwt() -> 'tags'"])
    }
  }

  @Test(
    "a condition that fails is named with the values it read, and so is a list without elements")
  func failures() async throws {
    try await traced { _, why in
      let report = try await why("cards", ["20"], claims: #"{"sub":"bob"}"#)
      #expect(!report.isHeld)
      let team = report.ways[0].failures
      #expect(team.map { $0.map(\.condition) } == [["NOT hidden"]])
      #expect(team[0][0].values.map { "\($0.name) \($0.json)" } == ["hidden true"])
      #expect(report.ways[1].failures.map { $0.map(\.condition) } == [["tags has elements"]])
    }
  }

  @Test("a request is told by which lookup it reaches the bucket, or where it ends instead")
  func access() async throws {
    try await traced { _, why in
      let ann = try await why("cards", ["10"], claims: #"{"sub":"ann","tags":["blue"]}"#)
      #expect(ann.isHeld)
      let granted = try #require(ann.ways[0].buckets.first?.access)
      #expect(granted.isGranted)
      #expect(
        granted.reasons == [
          #"members WHERE person = request.user_id(): under ["ann"] stands [1]"#
        ])
      let red = try #require(ann.ways[1].buckets.first { $0.name == "tag[\"red\"]" })
      #expect(red.access?.isGranted == false)
      #expect(red.access?.reasons == [#"it leads elsewhere: ["blue"]"#])
      let office = try #require(ann.ways[2].buckets.first?.access)
      #expect(
        office.reasons == [
          "not request.jwt() ->> 'role' = 'office', and request.jwt() ->> 'role' is null"
        ])

      let eve = try await why("cards", ["10"], claims: #"{"sub":"eve"}"#)
      #expect(!eve.isHeld)
      #expect(
        eve.ways[0].buckets.first?.access?.reasons == [
          #"members WHERE person = request.user_id(): nothing stands under ["eve"]"#
        ])
      #expect(
        eve.ways[1].buckets.first?.access?.reasons == [
          "the elements of request.jwt() -> 'tags': there are none"
        ])
    }
  }

  @Test("a row with a composite key is found by its columns")
  func compositeKey() async throws {
    try await traced { _, why in
      let report = try await why("members", ["bob", "2"], claims: #"{"role":"office"}"#)
      #expect(report.exists)
      #expect(report.isHeld)
      #expect(report.ways.map(\.output) == ["members"])
      #expect(try await why("members", ["bob", "3"]).exists == false)
      await #expect(throws: PostgresError.self) { try await why("members", ["bob", "two"]) }
    }
  }

  @Test("a row that changed since the last tick is told so, on both sides of the change")
  func pending() async throws {
    try await traced { stage, why in
      try await stage.app.execute("UPDATE cards SET team = 2 WHERE id = 10")
      let report = try await why("cards", ["10"])
      #expect(report.isPending)
      let team = report.ways[0].buckets
      #expect(
        team.map { "\($0.name) \($0.isGiven) \($0.isStored)" } == [
          "team[2] true false", "team[1] false true",
        ])
      try await stage.app.execute("DELETE FROM cards WHERE id = 10")
      let gone = try await why("cards", ["10"])
      #expect(!gone.exists)
      #expect(gone.ways[0].buckets.map { "\($0.name) \($0.isGiven)" } == ["team[1] false"])
    }
  }

  @Test("the chain of lookups of a stream is told step by step, with what does not fit")
  func chain() async throws {
    let tables = """
      CREATE TABLE members (id int PRIMARY KEY, person text, org text);
      CREATE TABLE projects (id text PRIMARY KEY, org text);
      CREATE TABLE tasks (id int PRIMARY KEY, project text);
      INSERT INTO members VALUES (1, 'ann', 'north'), (2, 'bob', 'south');
      INSERT INTO projects VALUES ('bridge', 'north'), ('tunnel', 'south');
      INSERT INTO tasks VALUES (7, 'bridge');
      """
    let yaml = """
      config: {edition: 3}
      streams:
        project:
          query: |
            SELECT id, project FROM tasks WHERE project = subscription.parameter('p') AND project IN (
              SELECT projects.id FROM projects JOIN members ON members.org = projects.org
              WHERE members.person = auth.user_id())
      """
    let bridge = #"[{"stream":"project","parameters":{"p":"bridge"}}]"#
    try await traced(tables, yaml) { _, why in
      let ann = try await why("tasks", ["7"], claims: #"{"sub":"ann"}"#, subscriptions: bridge)
      #expect(ann.isHeld)
      let steps = ann.ways[0].buckets[0].access?.reasons ?? []
      #expect(steps.count == 2)
      #expect(steps.first?.hasSuffix(#"under ["ann"] stands ["north"]"#) == true)
      #expect(steps.last?.contains("org = members.org") == true)
      #expect(steps.last?.hasSuffix(#"under ["north"] stands ["bridge"]"#) == true)

      // Bob's way ends at his own organisation's project.
      let bob = try await why("tasks", ["7"], claims: #"{"sub":"bob"}"#, subscriptions: bridge)
      let access = try #require(bob.ways[0].buckets[0].access)
      #expect(!access.isGranted)
      #expect(access.reasons.count == 1)
      #expect(access.reasons[0].contains("is \"bridge\""))
      #expect(access.reasons[0].contains("projects.id is \"tunnel\""))

      let silent = try await why("tasks", ["7"], claims: #"{"sub":"ann"}"#)
      #expect(
        silent.ways[0].buckets[0].access?.reasons == [
          "there is no subscription to the stream project"
        ])
      let holders = try #require(silent.ways[0].buckets[0].holders?.first)
      #expect(Set(holders.requests.first?.map(\.json) ?? []) == ["\"ann\"", "\"bridge\""])
    }
  }

  @Test("rules that are not those in force are refused")
  func outdated() async throws {
    try await traced { stage, why in
      try await stage.deploy(TestRules.rules([]))
      await #expect(throws: StorageError.self) { try await why("cards", ["10"]) }
    }
  }
}
