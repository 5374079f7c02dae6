import BucketStorage
import Postgres
import SQLGeneration
import TestSupport
import Testing

/// What subscriptions come to.
@Suite struct StreamGrantTests {
  private static let rows = """
    INSERT INTO members VALUES ('ann', 'o1'), ('ann', 'o2'), ('bob', 'o2');
    INSERT INTO projects VALUES ('p1', 'o1'), ('p2', 'o2'), ('p3', 'o3');
    INSERT INTO boards VALUES ('b1', 'p1'), ('b2', 'p2'), ('b3', 'p3');
    INSERT INTO tasks VALUES ('t1', 'b1', 'one'), ('t2', 'b2', 'two'), ('t3', 'b3', 'three');
    """

  private func request(
    _ user: String, _ subscriptions: String = "[]", defaults: Bool = true
  ) -> RequestContext {
    RequestContext(
      claimsJSON: "{\"sub\":\"\(user)\"}", subscriptionsJSON: subscriptions,
      includeDefaults: defaults)
  }

  private func withStreams(_ body: @escaping @Sendable (Stage) async throws -> Void) async throws {
    try await withStage(StreamRules.tables + Self.rows, StreamRules.rules) { stage in
      try await body(stage)
    }
  }

  @Test func `a chain of lookups is followed, and every key of it is told`() async throws {
    try await withStreams { stage in
      let ann = try await stage.store.checkpoint(for: request("ann"))
      #expect(ann.buckets.map(\.name) == [#"mine|0["b1"]"#, #"mine|0["b2"]"#])
      #expect(ann.buckets.map(\.priority) == [2, 2])
      #expect(ann.buckets.map(\.count) == [1, 1])
      #expect(ann.buckets.map(\.subscriptions) == [[], []])
      #expect(
        ann.lookupKeys.map(\.key).sorted()
          == [#"["ann"]"#, #"["o1"]"#, #"["o2"]"#, #"["p1"]"#, #"["p2"]"#])
      #expect(Set(ann.lookupKeys.map(\.lookup)).count == 3)
      let names = ann.streams.map(\.name)
      #expect(names == ["mine", "board", "boards", "staff"])
      #expect(ann.streams.map(\.isDefault) == [true, false, false, false])
      let nobody = try await stage.store.checkpoint(for: request("nobody"))
      #expect(nobody.buckets.isEmpty)
      #expect(nobody.lookupKeys.map(\.key) == [#"["nobody"]"#])
      let without = try await stage.store.checkpoint(for: request("ann", defaults: false))
      #expect(without.buckets.isEmpty && without.lookupKeys.isEmpty)
    }
  }

  @Test func `the status names the stream of each definition`() async throws {
    try await withStreams { stage in
      let report = try await StatusReader().read(stage.app)
      let streams = Dictionary(
        uniqueKeysWithValues: report.definitions.map { ($0.name, $0.stream) })
      #expect(
        streams == [
          "board|0": "board", "boards|0": "boards", "mine|0": "mine", "staff|0": "staff",
        ])
    }
  }

  @Test func `a change anywhere in a chain is a change of a key that was told`() async throws {
    try await withStreams { stage in
      try await stage.sequencing {
        let changes = [
          ("DELETE FROM members WHERE person = 'ann' AND org = 'o2'", ["b1"]),
          ("UPDATE projects SET org = 'o1' WHERE id = 'p3'", ["b1", "b3"]),
          ("UPDATE boards SET project = 'p2' WHERE id = 'b1'", ["b3"]),
          ("INSERT INTO boards VALUES ('b4', 'p1')", ["b3", "b4"]),
        ]
        for (change, boards) in changes {
          let before = try await stage.store.checkpoint(for: request("ann"))
          try await stage.app.execute(change)
          try await stage.settle()
          let after = try await stage.store.checkpoint(for: request("ann"))
          #expect(after.buckets.map(\.name) == boards.map { "mine|0[\"\($0)\"]" })
          let told = try #require(try await stage.store.changes(since: before.tick.number))
          #expect(!Set(told.lookupKeys).isDisjoint(with: before.lookupKeys), "\(change)")
        }
        try await stage.expectSound()
      }
    }
  }

  @Test func `each subscription is evaluated with its own parameters`() async throws {
    try await withStreams { stage in
      let state = try await stage.store.checkpoint(
        for: request(
          "ann",
          #"""
          [{"stream":"board","parameters":{"board":"b3"}},
           {"stream":"board","parameters":{"board":"b1"},"override_priority":1},
           {"stream":"board","parameters":{"board":"b3"},"override_priority":0},
           {"stream":"board","parameters":null},
           {"stream":"mine","parameters":{},"override_priority":3},
           {"stream":"elsewhere","parameters":{}}]
          """#))
      #expect(
        state.buckets.map(\.name)
          == [#"board|0["b3"]"#, #"board|0["b1"]"#, #"mine|0["b1"]"#, #"mine|0["b2"]"#])
      // The least of all reasons; the default reason has the stream's own.
      #expect(state.buckets.map(\.priority) == [0, 1, 2, 2])
      #expect(state.buckets.map(\.subscriptions) == [[0, 2], [1], [4], [4]])
      #expect(state.faults.isEmpty)
      let only = try await stage.store.checkpoint(
        for: request(
          "ann", #"[{"stream":"mine","parameters":{},"override_priority":3}]"#, defaults: false))
      #expect(only.buckets.map(\.priority) == [3, 3])
    }
  }

  @Test func `a value that a stream cannot use fails its subscription alone`() async throws {
    try await withStreams { stage in
      let state = try await stage.store.checkpoint(
        for: request(
          "ann",
          #"""
          [{"stream":"boards","parameters":{"boards":["b1","b3",null,7]}},
           {"stream":"boards","parameters":{"boards":"b1"}},
           {"stream":"boards","parameters":{}},
           {"stream":"boards","parameters":{"boards":{"x":"b2"}}},
           {"stream":"board","parameters":{"board":["b1"]}}]
          """#))
      #expect(
        state.buckets.map(\.name) == [
          #"mine|0["b1"]"#, #"mine|0["b2"]"#, #"boards|0["b1"]"#, #"boards|0["b2"]"#,
          #"boards|0["b3"]"#, "boards|0[7]", #"board|0["[\"b1\"]"]"#,
        ])
      #expect(state.faults.map(\.place) == [1])
      #expect(Set(state.faults.map(\.stream)) == ["boards"])
      #expect(state.faults.allSatisfy { $0.message.contains("boards") })
    }
  }

  @Test func `values that multiply are an error with a code, not an endless statement`()
    async throws
  {
    try await withStreams { stage in
      try await stage.app.execute(
        "INSERT INTO members SELECT 'eve', 'e' || i FROM generate_series(1, 100) i")
      try await stage.sequencing { try await stage.settle() }
      // 101 keys and no bucket.
      #expect(try await stage.store.checkpoint(for: request("eve")).lookupKeys.count == 101)
      let numbers = (1...501).map(String.init).joined(separator: ",")
      let same = [String](repeating: "1", count: 501).joined(separator: ",")
      for (limit, user, elements) in [(2, "eve", "1"), (1, "ann", same), (500, "ann", numbers)] {
        let store = BucketStore(pool: stage.pool, bucketLimit: limit)
        let boards = #"[{"stream":"boards","parameters":{"boards":[\#(elements)]}}]"#
        let error = await #expect(throws: StorageError.self) {
          _ = try await store.checkpoint(for: request(user, boards, defaults: user == "eve"))
        }
        #expect(error?.code == .tooManyBuckets, "\(limit) \(user)")
      }
    }
  }

  @Test func `a chain costs index probes, however many rows there are`() async throws {
    try await withStreams { stage in
      try await stage.app.execute(
        """
        INSERT INTO members SELECT 'u' || i % 10000, 'x' || i % 5000 || '-' || i
          FROM generate_series(1, 50000) i;
        INSERT INTO projects SELECT 'x' || i, 'x' || i % 5000 || '-' || i
          FROM generate_series(1, 50000) i;
        """)
      try await stage.sequencing { try await stage.settle() }
      let state = try await stage.store.checkpoint(for: request("u1"))
      #expect(state.lookupKeys.count == 11)
      for isAnalysed in [false, true] {
        if isAnalysed { try await stage.app.execute("ANALYZE sluice.parameters") }
        let plan = try await plan(stage, user: "u1")
        let probes = plan.filter { $0.contains("parameters_by_key") }
        #expect(probes.count == 3)
        // One key, its five organisations, and their five projects that have no board.
        #expect(probes.map { $0.hasSuffix("loops=1)") } == [true, false, false])
        #expect(probes.dropFirst().allSatisfy { $0.hasSuffix("loops=5)") })
        #expect(!plan.contains { $0.contains("Seq Scan on parameters") })
        #expect(!plan.contains { $0.contains("Hash Join") || $0.contains("Merge Join") })
      }
    }
  }

  @Test func `a gate is open once, however many rows say so`() async throws {
    try await withStreams { stage in
      try await stage.app.execute(
        "INSERT INTO members SELECT 'eve', 'x' || i FROM generate_series(1, 2000) i")
      try await stage.sequencing {
        try await stage.settle()
        let store = BucketStore(pool: stage.pool, bucketLimit: 2)
        let subscription = #"[{"stream":"staff","parameters":{}}]"#
        let open = try await store.checkpoint(
          for: request("eve", subscription, defaults: false))
        #expect(open.buckets.map(\.name) == ["staff|0[]"])
        #expect(open.lookupKeys.map(\.key) == [#"["eve"]"#])
        try await stage.app.execute("DELETE FROM members WHERE person = 'eve'")
        try await stage.settle()
        let shut = try await store.checkpoint(
          for: request("eve", subscription, defaults: false))
        #expect(shut.buckets.isEmpty && shut.lookupKeys == open.lookupKeys)
      }
    }
  }

  /// How the server answers what the stream `mine` gives a user.
  private func plan(_ stage: Stage, user: String) async throws -> [String] {
    let numbers = try await stage.app.query(
      """
      SELECT l.id FROM sluice.lookups l JOIN sluice.definitions d ON d.id = l.definition
      WHERE d.name = 'mine|0' ORDER BY l.ordinal
      """)
    let grant = StreamRules.rules.definitions[0].grants[0]
    let sql = grant.sql { numbers.int($0, 0) ?? 0 }
    let reader = try await stage.database.connect(settings: BucketStore.settings)
    let result = try await reader.query(
      """
      EXPLAIN (ANALYZE) WITH r AS MATERIALIZED (SELECT $1::text AS claims, '{}'::text AS parameters,
        '[]'::text AS subscriptions, true AS include_defaults)
      SELECT * FROM (\(sql)) x LIMIT 500001
      """, [.text("{\"sub\":\"\(user)\"}")])
    await reader.close()
    return (0..<result.rowCount).compactMap { result.string($0, 0) }
  }
}
