import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// From a rules file to the buckets of a request, through the database.
@Suite struct GrantTests {
  private static let yaml = """
    bucket_definitions:
      mine:
        parameters: SELECT list_id FROM members WHERE person = request.user_id()
        data:
          - SELECT * FROM todos WHERE list_id = bucket.list_id
          - SELECT id, name FROM lists WHERE id = bucket.list_id
      everybody:
        priority: 1
        data:
          - SELECT id, name FROM lists WHERE name = 'common'
    """

  private static let tables = """
    CREATE TABLE lists (id text PRIMARY KEY, name text);
    CREATE TABLE members (person text, list_id text, PRIMARY KEY (person, list_id));
    CREATE TABLE todos (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), list_id text, title text, done bool);
    INSERT INTO lists VALUES ('a', 'common'), ('b', 'other');
    INSERT INTO members VALUES ('u1', 'a'), ('u2', 'b');
    INSERT INTO todos (list_id, title) SELECT 'a', 't' || i FROM generate_series(1, 10) i;
    """

  private func request(_ user: String) -> RequestContext {
    RequestContext(claimsJSON: "{\"sub\":\"\(user)\"}")
  }

  @Test func `a request holds what its lookups say, and hears when they change`() async throws {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      try await stage.sequencing {
        let first = try await stage.store.checkpoint(for: request("u1"))
        #expect(first.buckets.map(\.name) == ["everybody[]", #"mine["a"]"#])
        #expect(first.buckets.map(\.count) == [1, 11])
        #expect(first.buckets.map(\.priority) == [1, 3])
        #expect(first.lookupKeys.map(\.key) == [#"["u1"]"#])

        let stranger = try await stage.store.checkpoint(for: request("nobody"))
        #expect(stranger.buckets.map(\.name) == ["everybody[]"])
        #expect(stranger.lookupKeys.map(\.key) == [#"["nobody"]"#])

        try await stage.app.execute(
          "INSERT INTO members VALUES ('nobody', 'b'), ('nobody', 'new'); DELETE FROM members WHERE person = 'u1'"
        )
        try await stage.settle()
        let changes = try #require(try await stage.store.changes(since: first.tick.number))
        #expect(changes.buckets.isEmpty)
        #expect(Set(changes.lookupKeys.map(\.key)) == [#"["u1"]"#, #"["nobody"]"#])
        #expect(Set(changes.lookupKeys.map(\.lookup)) == [first.lookupKeys[0].lookup])
        let (gone, come) = (
          try await stage.store.checkpoint(for: request("u1")),
          try await stage.store.checkpoint(for: request("nobody"))
        )
        #expect(gone.buckets.map(\.name) == ["everybody[]"])
        #expect(come.buckets.map(\.name) == ["everybody[]", #"mine["b"]"#, #"mine["new"]"#])
        #expect(come.buckets.map(\.rowID).last == .some(nil))
        try await stage.expectSound()
      }
    }
  }

  @Test func `the live feed reads the entries of several buckets in one snapshot`() async throws {
    try await withStage(Self.tables, nil) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      let before = try await stage.store.checkpoint(for: request("u1"))
      let buckets = before.buckets.compactMap(\.rowID)
      try await stage.sequencing {
        try await stage.app.execute(
          "UPDATE todos SET done = true WHERE title IN ('t1', 't2'); DELETE FROM todos WHERE title = 't3'; "
            + "UPDATE lists SET name = 'renamed' WHERE id = 'a'")
        try await stage.settle()
      }
      let live = try await stage.store.liveEntries(
        buckets: buckets, after: before.tick.boundaryID)
      #expect(live.head.number > before.tick.number)
      #expect(live.buckets.map(\.rowID) == buckets)
      #expect(live.buckets.map(\.count) == [0, 10])
      #expect(live.rows.count == 5)
      let kinds = live.rows.map { live.result.string($0, 5) == nil }
      #expect(kinds.filter(\.self).count == 2)
      let ids = live.rows.map { live.result.int($0, 2)! }
      #expect(ids.dropFirst().elementsEqual(ids.dropFirst().sorted()))
      #expect(live.whole == Set(buckets))
      let some = try await stage.store.liveEntries(
        buckets: buckets.reversed(), after: before.tick.boundaryID, limit: 4)
      #expect(some.rows.count == 4)
      #expect(some.whole == [buckets[1]])
      // The digest of the bucket's head is the XOR of the live rows' checksums.
      let mine = before.buckets[1].rowID!
      let head = try await stage.store.head().tick
      let page = try await stage.store.page(bucket: mine, after: 0, through: head.boundaryID)
      let digest = page.rows.reduce(UInt64(0)) { sum, row in
        page.result.string(row, 5) == nil
          ? sum : sum ^ UInt64(page.result.string(row, 4)!, radix: 16)!
      }
      #expect(UInt64(page.bucket.digest, radix: 16) == digest)
    }
  }

  @Test func `pages and the live feed end before they hold too many bytes`() async throws {
    try await withStage(
      """
      CREATE TABLE members (person text, list_id text, PRIMARY KEY (person, list_id));
      CREATE TABLE todos (id int PRIMARY KEY, list_id text, title text);
      CREATE TABLE lists (id text PRIMARY KEY, name text);
      INSERT INTO members VALUES ('u1', 'a'), ('u1', 'b');
      """, nil
    ) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      try await stage.sequencing {
        try await stage.app.execute("INSERT INTO todos VALUES (0, 'a', ''), (9, 'b', '')")
        try await stage.settle()
        let before = try await stage.store.checkpoint(for: request("u1"))
        let buckets = before.buckets.filter { $0.definition == "mine" }.compactMap(\.rowID)
        try #require(buckets.count == 2)
        // In order: three of 300, one of 5,000, and one of 300 in the other list.
        for (id, length) in [300, 300, 300, 5000, 300].enumerated() {
          try await stage.app.execute(
            "INSERT INTO todos VALUES (\(id + 1), '\(id < 4 ? "a" : "b")', repeat('x', \(length)))")
          try await stage.settle()
        }
        let head = try await stage.store.head().tick
        let large = try await stage.app.query("SELECT max(octet_length(data)) FROM sluice.entries")
        let bytes = Int(try #require(large.int(0, 0)))

        func page(after: Int64, largest: Int) async throws -> BucketPage {
          try await stage.store.page(
            bucket: buckets[0], after: after, through: head.boundaryID, maxBytes: 1_000,
            largest: largest)
        }
        let first = try await page(after: before.tick.boundaryID, largest: 1_000)
        #expect(first.rows.count == 3)
        #expect(first.hasMore)
        #expect(first.oversize == nil)
        let last = try #require(first.lastEntryID)
        let refused = try await page(after: last, largest: bytes - 1)
        #expect(refused.rows.isEmpty)
        #expect(refused.oversize == bytes)
        let taken = try await page(after: last, largest: bytes)
        #expect(taken.rows.count == 1)
        #expect(taken.oversize == nil)
        #expect(!taken.hasMore)

        func live(_ buckets: [Int64], maxBytes: Int) async throws -> (rows: Int, whole: Set<Int64>)
        {
          let entries = try await stage.store.liveEntries(
            buckets: buckets, after: before.tick.boundaryID, maxBytes: maxBytes)
          return (entries.rows.count, entries.whole)
        }
        let all = try await live(buckets, maxBytes: 10_000)
        #expect(all.rows == 5 && all.whole == Set(buckets))
        let cut = try await live(buckets, maxBytes: 2_000)
        #expect(cut.rows == 3 && cut.whole.isEmpty)
        let other = try await live(buckets.reversed(), maxBytes: 2_000)
        #expect(other.rows == 4 && other.whole == [buckets[1]])
        // A single row that is larger may come, if it comes first.
        try await stage.app.execute("UPDATE todos SET title = repeat('y', 5000) WHERE id = 5")
        try await stage.settle()
        let alone = try await live(buckets.reversed(), maxBytes: 2_000)
        #expect(alone.rows == 1 && alone.whole == [buckets[1]])
      }
    }
  }

  @Test func `too many buckets are an error with a code`() async throws {
    try await withStage(
      Self.tables + "INSERT INTO members SELECT 'u9', 'l' || i FROM generate_series(1, 1001) i;",
      nil
    ) { stage in
      try await stage.deploy(try await stage.compile(Self.yaml))
      let error = await #expect(throws: StorageError.self) {
        _ = try await stage.store.checkpoint(for: request("u9"))
      }
      #expect(error?.code == .tooManyBuckets)
    }
  }

  @Test func `the catalog knows keys, types and partitions`() async throws {
    try await withStage(
      """
      CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN age AS int;
      CREATE TYPE pair AS (a int, b text);
      CREATE TABLE plain (x int, y text NOT NULL, m mood[], p pair, a age, g int GENERATED ALWAYS AS (x + 1) STORED);
      CREATE UNIQUE INDEX ON plain (x); CREATE UNIQUE INDEX ON plain (y);
      CREATE TABLE parts (b int, a int, PRIMARY KEY (a, b)) PARTITION BY LIST (b);
      CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
      CREATE VIEW seen AS SELECT * FROM plain;
      CREATE TABLE keyless (x int UNIQUE);
      """, nil
    ) { stage in
      let catalog = try await CatalogReader().read(stage.app)
      let plain = try #require(catalog.table(schema: "public", name: "plain"))
      #expect(plain.key == ["y"])
      #expect(plain.column("g")?.generated == true)
      guard case .array(let element) = plain.column("m")?.type.kind else {
        Issue.record("not an array")
        return
      }
      #expect(element.kind == .enumeration)
      #expect(plain.column("a")?.type.base.name == "int4")
      guard case .composite(let attributes) = plain.column("p")?.type.kind else {
        Issue.record("not a composite")
        return
      }
      #expect(attributes.map(\.name) == ["a", "b"])
      let parts = try #require(catalog.table(schema: "public", name: "parts"))
      #expect(parts.kind == .partitioned)
      #expect(parts.key == ["a", "b"])
      #expect(parts.partitions.map(\.name) == ["part_1"])
      #expect(catalog.table(schema: "public", name: "seen")?.kind == .view)
      #expect(catalog.table(schema: "public", name: "keyless")?.key == [])
      #expect(catalog.tables.allSatisfy { $0.schema != "sluice" })
    }
  }

  @Test func `status tells who leads and what is built`() async throws {
    try await withStage { stage in
      let idle = try await StatusReader().read(stage.app)
      #expect(idle.leader == nil)
      #expect(idle.definitions.map(\.state) == ["active"])
      #expect(idle.definitions.map(\.stream) == [nil])
      #expect(idle.sources.map(\.uncaptured) == [0])
      try await stage.sequencing {
        try await stage.until { try await StatusReader().read(stage.app).leader != nil }
      }
    }
  }

  @Test func `installing again changes nothing, and uninstalling leaves nothing`() async throws {
    try await withStage { stage in
      #expect(try await Installer().install(stage.app).isEmpty)
      #expect(try await Installer().missing(stage.app) == [])
      try await Installer().uninstall(stage.app)
      #expect(try await Installer().missing(stage.app) == nil)
      try await stage.app.execute("INSERT INTO todos VALUES (1, 1, 'free')")
      let triggers = try await stage.app.query("SELECT count(*) FROM pg_trigger")
      #expect(triggers.int(0, 0) == 0)
      // The printed script does the same as the command.
      try await stage.app.execute(Installer().script)
      #expect(try await Installer().missing(stage.app) == [])
    }
  }
}
