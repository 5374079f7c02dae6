import Foundation
import Synchronization
import Testing

/// Every scenario starts processes of its own; one after the other leaves each the machine to itself.
@Suite(.serialized) struct EndToEnd {}

extension EndToEnd {
  /// No mix of open, late, prepared and rolled-back transactions loses a row or shows half of one.
  @Suite(.serialized) struct Ordering {
    static let tasks = """
      CREATE TABLE tasks (id text PRIMARY KEY, owner text NOT NULL, title text, done boolean);
      """
    static let tasksByOwner = """
      bucket_definitions:
        mine:
          parameters: SELECT request.user_id() AS owner
          data:
            - SELECT id, title, done FROM tasks WHERE owner = bucket.owner
      """

    @Test(
      "late-commit: a transaction that began first and commits last arrives at the next checkpoint")
    func lateCommit() async throws {
      try await Stage.set(schema: Self.tasks, rules: Self.tasksByOwner) { stage in
        let ann = try stage.replica("ann")
        let (early, prepared, points) = (
          try stage.source.session(), try stage.source.session(), try stage.source.session()
        )
        defer { for session in [early, prepared, points] { session.close() } }
        try await early.run("BEGIN; INSERT INTO tasks VALUES ('A', 'ann', 'late', false)")
        try await prepared.run(
          "BEGIN; INSERT INTO tasks VALUES ('P', 'ann', 'prepared', false); PREPARE TRANSACTION 'late-\(stage.gateway.port)'"
        )
        try await points.run(
          """
          BEGIN; INSERT INTO tasks VALUES ('S', 'ann', 'kept', false); SAVEPOINT one;
          INSERT INTO tasks VALUES ('R', 'ann', 'rolled back', false); ROLLBACK TO one;
          SAVEPOINT two; INSERT INTO tasks VALUES ('T', 'ann', 'released', true); RELEASE two
          """)
        try await stage.source.run("INSERT INTO tasks VALUES ('B', 'ann', 'first', false)")
        ann.connect()
        try await ann.shows("B alone") { $0["tasks"]?.keys.sorted() == ["B"] }
        try await stage.source.run("INSERT INTO tasks VALUES ('C', 'ann', 'between', false)")
        try await ann.shows("B and C") { $0["tasks"]?.keys.sorted() == ["B", "C"] }
        try await early.run("COMMIT")
        try await ann.shows("A as well") { $0["tasks"]?.keys.sorted() == ["A", "B", "C"] }
        try await points.run("COMMIT")
        try await ann.shows("S and T, not R") {
          $0["tasks"]?.keys.sorted() == ["A", "B", "C", "S", "T"]
        }
        try await stage.source.run("COMMIT PREPARED 'late-\(stage.gateway.port)'")
        try await ann.shows("P at last") {
          $0["tasks"]?.keys.sorted() == ["A", "B", "C", "P", "S", "T"]
        }
        #expect(ann.content["tasks"]?["T"] == ["title": .text("released"), "done": .number("1")])
        #expect(stage.violations == [])
        #expect(try await stage.verify().status == 0)
      }
    }

    @Test("equal-stamp: two rows of one transaction arrive together, also page by page of one row")
    func equalStamp() async throws {
      try await Stage.set(schema: Self.tasks, rules: Self.tasksByOwner) { stage in
        try await stage.source.run(
          "INSERT INTO tasks VALUES ('x', 'ann', 'old', false), ('y', 'ann', 'old', false)")
        let pairs = Mutex<Set<[Value?]>>([])
        let ann = try stage.replica("ann") { _, content in
          let seen = ["x", "y"].map { content["tasks"]?[$0]?["title"] }
          pairs.withLock { _ = $0.insert(seen) }
        }
        ann.connect()
        try await ann.shows("both rows") { $0["tasks"]?.count == 2 }
        for title in ["one", "two", "three"] {
          try await stage.source.run("UPDATE tasks SET title = '\(title)'")
          try await ann.shows(title) { $0["tasks"]?["x"]?["title"] == .text(title) }
        }
        for pair in pairs.withLock({ $0 }) { #expect(pair[0] == pair[1]) }

        let token = try stage.token("ann")
        let bucket = "mine%5B%22ann%22%5D"
        var after = ""
        var ids: [String] = []
        var stamps: Set<String> = []
        for _ in 0..<10 {
          let answer = try await HTTP.get(
            port: stage.gateway.port, "/v1/buckets/\(bucket)/rows?limit=1\(after)", token: token)
          try #require(answer.status == 200, "\(answer.body)")
          let ops = answer.json["ops"] as? [[Any]] ?? []
          #expect(ops.count <= 1)
          for op in ops {
            ids.append(op[1] as? String ?? "")
            stamps.insert(op[2] as? String ?? "")
          }
          guard answer.json["more"] as? Bool == true else { break }
          after = "&after=\(answer.json["next"] as? String ?? "")"
        }
        #expect(ids.sorted() == ["x", "y"])
        #expect(stamps.count == 1)
        #expect(stage.violations == [])
      }
    }

    @Test("idle-transaction: a transaction that sits on its id holds nobody up")
    func idleTransaction() async throws {
      try await Stage.set(schema: Self.tasks, rules: Self.tasksByOwner) { stage in
        let idle = try stage.source.session()
        defer { idle.close() }
        try await idle.run("BEGIN; SELECT pg_current_xact_id()")
        try await stage.source.run("INSERT INTO tasks VALUES ('a', 'ann', 't', false)")
        let ann = try stage.replica("ann")
        ann.connect()
        try await ann.shows("a", within: 10) { $0["tasks"]?.count == 1 }
        for number in 1...5 {
          try await stage.source.run("UPDATE tasks SET title = 'n\(number)'")
          try await ann.shows("n\(number)", within: 10) {
            $0["tasks"]?["a"]?["title"] == .text("n\(number)")
          }
        }
        let late = try stage.replica("ann")
        try await late.sync(within: 10)
        #expect(late.content == ann.content)
      }
    }

    @Test(
      "cascade: a project deleted with ON DELETE CASCADE goes with its children in one checkpoint")
    func cascade() async throws {
      let schema = """
        CREATE TABLE projects (id int PRIMARY KEY, name text);
        CREATE TABLE members (id int PRIMARY KEY, project_id int REFERENCES projects ON DELETE CASCADE, user_id text);
        CREATE TABLE tasks (id int PRIMARY KEY, project_id int REFERENCES projects ON DELETE CASCADE, title text);
        INSERT INTO projects VALUES (1, 'one'), (2, 'two');
        INSERT INTO members VALUES (10, 1, 'ann'), (20, 2, 'ann');
        INSERT INTO tasks SELECT n, 1 + n % 2, 'task ' || n FROM generate_series(1, 40) AS n;
        """
      let rules = """
        bucket_definitions:
          project:
            parameters: SELECT project_id FROM members WHERE user_id = request.user_id()
            data:
              - SELECT * FROM projects WHERE id = bucket.project_id
              - SELECT * FROM tasks WHERE project_id = bucket.project_id
        """
      try await Stage.set(schema: schema, rules: rules) { stage in
        let halves = Mutex(0)
        let ann = try stage.replica("ann") { _, content in
          let (projects, tasks) = (content["projects"]?.count ?? 0, content["tasks"]?.count ?? 0)
          if tasks != projects * 20 { halves.withLock { $0 += 1 } }
        }
        ann.connect()
        try await ann.shows("both projects") { $0["tasks"]?.count == 40 }
        try await stage.source.run("DELETE FROM projects WHERE id = 1")
        try await ann.shows("project two alone") {
          $0["projects"]?.keys.sorted() == ["2"] && $0["tasks"]?.count == 20
        }
        #expect(halves.withLock { $0 } == 0)
        #expect(stage.violations == [])
      }
    }

    @Test("or-arms: a row visible for two reasons is sent once and stays while one of them holds")
    func orArms() async throws {
      let schema = """
        CREATE TABLE docs (id text PRIMARY KEY, owner text, title text);
        CREATE TABLE reviewers (id int PRIMARY KEY, doc_id text, user_id text);
        INSERT INTO docs VALUES ('own', 'ann', 'o'), ('both', 'ann', 'b'), ('review', 'bob', 'r'), ('neither', 'bob', 'n');
        INSERT INTO reviewers VALUES (1, 'both', 'ann'), (2, 'review', 'ann');
        """
      let rules = """
        bucket_definitions:
          doc:
            parameters:
              - SELECT id AS doc_id FROM docs WHERE owner = request.user_id()
              - SELECT doc_id FROM reviewers WHERE user_id = request.user_id()
            data:
              - SELECT id, title FROM docs WHERE id = bucket.doc_id
        """
      try await Stage.set(schema: schema, rules: rules) { stage in
        let ann = try stage.replica("ann")
        ann.connect()
        try await ann.shows("the rows of both arms") {
          $0["docs"]?.keys.sorted() == ["both", "own", "review"]
        }
        #expect(ann.opsReceived == 3)
        try await stage.source.run("DELETE FROM reviewers WHERE id = 1")
        try await stage.source.run("UPDATE docs SET title = 'changed'")
        try await ann.shows("the change") { $0["docs"]?["both"]?["title"] == .text("changed") }
        #expect(ann.ids("docs") == ["both", "own", "review"])
        try await stage.source.run("UPDATE docs SET owner = 'bob' WHERE id = 'both'")
        try await ann.shows("both is gone") { $0["docs"]?.keys.sorted() == ["own", "review"] }
        try await stage.source.run("DELETE FROM reviewers")
        try await ann.shows("own alone") { $0["docs"]?.keys.sorted() == ["own"] }
        #expect(!ann.keysReceived.contains("docs/neither"))
        #expect(stage.violations == [])
      }
    }

    @Test("truncate: with other transactions open around it, exactly the new rows are left")
    func truncate() async throws {
      try await Stage.set(schema: Self.tasks, rules: Self.tasksByOwner) { stage in
        try await stage.source.run(
          "INSERT INTO tasks SELECT 'old' || n, 'ann', 't', false FROM generate_series(1, 50) AS n")
        let ann = try stage.replica("ann")
        ann.connect()
        try await ann.shows("the old rows") { $0["tasks"]?.count == 50 }
        let (before, truncating, after) = (
          try stage.source.session(), try stage.source.session(), try stage.source.session()
        )
        defer { for session in [before, truncating, after] { session.close() } }
        try await before.run("BEGIN; INSERT INTO tasks VALUES ('early', 'ann', 'e', false)")
        let cut = truncating.begin(
          "BEGIN; TRUNCATE tasks; INSERT INTO tasks VALUES ('new', 'ann', 'n', false)")
        await pause(0.2)
        let waiting = after.begin("INSERT INTO tasks VALUES ('after', 'ann', 'a', false)")
        await pause(0.2)
        try await before.run("COMMIT")
        try await eventually("the table is cut") { truncating.isDone(cut) }
        await pause(0.2)
        try await truncating.run("COMMIT")
        try await eventually("the waiting row is in") { after.isDone(waiting) }
        try await ann.shows("exactly the new rows") {
          $0["tasks"]?.keys.sorted() == ["after", "new"]
        }
        try await stage.source.run("TRUNCATE tasks")
        try await ann.shows("nothing") { $0["tasks"] == nil }
        #expect(stage.violations == [])
        #expect(try await stage.verify().status == 0)
      }
    }

    @Test("bank: every checkpoint that any client shows has the same total")
    func bank() async throws {
      let schema = """
        CREATE TABLE accounts (id int PRIMARY KEY, region int NOT NULL, amount bigint NOT NULL);
        INSERT INTO accounts SELECT n, n % 5, 1000 FROM generate_series(1, 100) AS n;
        """
      let rules = """
        bucket_definitions:
          region:
            parameters: SELECT value AS region FROM json_each(request.jwt() -> 'regions')
            data:
              - SELECT id, region, amount FROM accounts WHERE region = bucket.region
        """
      let transfers = """
        DO $$
        DECLARE a int; b int;
        BEGIN
          FOR i IN 1..250 LOOP
            a := 1 + floor(random() * 100)::int; b := 1 + floor(random() * 100)::int;
            PERFORM 1 FROM accounts WHERE id IN (a, b) ORDER BY id FOR UPDATE;
            UPDATE accounts SET amount = amount - 7 WHERE id = a;
            IF i % 7 = 0 THEN PERFORM pg_sleep(random() * 0.01); END IF;
            UPDATE accounts SET amount = amount + 7 WHERE id = b;
            IF i % 11 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
          END LOOP;
        END $$;
        """
      try await Stage.set(schema: schema, rules: rules) { stage in
        let wrong = WrongTotals()
        let replicas = try (1...3).map { number in
          try stage.replica("teller\(number)", claims: ["regions": [0, 1, 2, 3, 4]]) { _, content in
            let total = content["accounts"]?.values.reduce(0) { $0 + ($1["amount"]?.integer ?? 0) }
            wrong.check(total)
          }
        }
        for replica in replicas { replica.connect() }
        try await replicas[0].shows("all accounts") { $0["accounts"]?.count == 100 }
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<4 { group.addTask { try await stage.source.run(transfers) } }
          group.addTask {
            for _ in 0..<10 {
              let fresh = try stage.replica("late", claims: ["regions": [0, 1, 2, 3, 4]]) {
                _, content in
                let total = content["accounts"]?.values.reduce(0) {
                  $0 + ($1["amount"]?.integer ?? 0)
                }
                wrong.check(total)
              }
              try await fresh.sync()
            }
          }
          try await group.waitForAll()
        }
        let amounts = try await stage.source.lines("SELECT id || '=' || amount FROM accounts")
        for replica in replicas {
          try await replica.shows("the final amounts") { content in
            let shown = content["accounts"]?.map { "\($0.key)=\($0.value["amount"]?.integer ?? 0)" }
            return Set(shown ?? []) == Set(amounts)
          }
        }
        #expect(wrong.found == [])
        #expect(replicas.allSatisfy { $0.completes > 5 })
        #expect(stage.violations == [])
      }
    }

    @Test("big-transaction: 200,000 rows change in one checkpoint while small changes go on")
    func bigTransaction() async throws {
      let schema = """
        CREATE TABLE items (id int PRIMARY KEY, version int NOT NULL);
        CREATE TABLE small (id int PRIMARY KEY, n int NOT NULL);
        INSERT INTO items SELECT n, 0 FROM generate_series(1, 200000) AS n;
        INSERT INTO small VALUES (1, 0);
        """
      let rules = """
        bucket_definitions:
          all:
            data:
              - SELECT * FROM items
              - SELECT * FROM small
        """
      try await Stage.set(schema: schema, rules: rules) { stage in
        let mixed = Mutex(0)
        let ann = try stage.replica("ann") { _, content in
          let versions = Set(content["items"]?.values.map { $0["version"] } ?? [])
          if versions.count != 1 || content["items"]?.count != 200_000 {
            mixed.withLock { $0 += 1 }
          }
        }
        ann.connect()
        try await ann.shows("the first version", within: 180) { $0["items"]?.count == 200_000 }
        let before = stage.gateway.residentBytes
        let session = try stage.source.session()
        defer { session.close() }
        let update = session.begin(
          "BEGIN; UPDATE items SET version = 1; SELECT pg_sleep(1); COMMIT")
        var peak = before
        for number in 1...20 {
          try await stage.source.run("UPDATE small SET n = \(number)")
          await pause(0.05)
          peak = max(peak, stage.gateway.residentBytes)
        }
        try await eventually("the big update", within: 120) { session.isDone(update) }
        try await eventually("the second version", within: 180) {
          peak = max(peak, stage.gateway.residentBytes)
          return ann.tick > 0 && ann.opsReceived >= 400_000
            && ann.content["items"]?["1"]?["version"] == .number("1")
        }
        #expect(ann.content["items"]?["200000"]?["version"] == .number("1"))
        #expect(ann.content["small"]?["1"]?["n"] == .number("20"))
        #expect(mixed.withLock { $0 } == 0)
        #expect(peak - before < 200 << 20, "grew by \((peak - before) >> 20) MB")
        #expect(stage.violations == [])
      }
    }
  }
}

/// Totals of the bank that are not the bank's.
private final class WrongTotals: Sendable {
  private let totals = Mutex<[Int]>([])
  var found: [Int] { totals.withLock { $0 } }

  func check(_ total: Int?) {
    if total != 100_000 { totals.withLock { $0.append(total ?? -1) } }
  }
}
