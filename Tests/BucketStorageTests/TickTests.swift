import BucketStorage
import Postgres
import Testing

@Suite struct TickTests {
  @Test func `rows that were there before the rules arrive`() async throws {
    try await withStage(
      Stage.todos + "; INSERT INTO todos SELECT i, i % 2, 't' || i FROM generate_series(1, 30) i"
    ) { stage in
      #expect(try await stage.rows("1").count == 15)
      #expect(try await stage.rows("0", pageSize: 4).count == 15)
      let rows = try await stage.rows("1")
      #expect(rows["1"] == #"{"id" : 1, "title" : "t1"}"#)
    }
  }

  @Test func `inserts, updates, moves and deletes are followed`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        _ = try await stage.app.query("INSERT INTO todos VALUES (1, 1, 'a'), (2, 1, 'b')")
        try await stage.settle()
        #expect(try await stage.rows("1").count == 2)
        _ = try await stage.app.query("UPDATE todos SET title = 'c' WHERE id = 1")
        _ = try await stage.app.query("UPDATE todos SET list_id = 2 WHERE id = 2")
        try await stage.settle()
        #expect(try await stage.rows("1") == ["1": #"{"id" : 1, "title" : "c"}"#])
        #expect(try await stage.rows("2") == ["2": #"{"id" : 2, "title" : "b"}"#])
        _ = try await stage.app.query("DELETE FROM todos")
        try await stage.settle()
        #expect(try await stage.rows("1").isEmpty)
        let state = try await stage.store.checkpoint(
          for: RequestContext(claimsJSON: #"{"list":1}"#))
        #expect(state.buckets.first?.count == 0)
        #expect(state.buckets.first?.digest == "0000000000000000")
      }
    }
  }

  @Test func `rows that come back to a bucket that they left take their tombstones' places`()
    async throws
  {
    try await withStage { stage in
      try await stage.sequencing {
        _ = try await stage.app.query(
          "INSERT INTO todos SELECT i, 1, 't' FROM generate_series(1, 40) i")
        try await stage.settle()
        // To a second bucket, back, to a third: by then each key has tombstones in two.
        for list in [2, 1, 3] {
          _ = try await stage.app.query("UPDATE todos SET list_id = $1", [.integer(Int64(list))])
          try await stage.settle()
          for other in 1...3 {
            #expect(try await stage.rows("\(other)").count == (other == list ? 40 : 0))
          }
          try await stage.expectSound()
        }
        // At once: some stay, some move, some change, some come, some go.
        _ = try await stage.app.query(
          """
          WITH moved AS (UPDATE todos SET list_id = id % 3 + 1 WHERE id <= 20),
          gone AS (DELETE FROM todos WHERE id > 35)
          INSERT INTO todos SELECT i, 2, 'new' FROM generate_series(41, 50) i
          """)
        try await stage.settle()
        try await stage.expectSound()
        let result = try await stage.app.query(
          """
          SELECT count(*), count(DISTINCT (source_key, bucket)), count(DISTINCT id),
            count(*) FILTER (WHERE data IS NOT NULL)
          FROM sluice.entries
          """)
        #expect(result.int(0, 0) == result.int(0, 1))
        #expect(result.int(0, 0) == result.int(0, 2))
        #expect(result.int(0, 3) == 45)
      }
    }
  }

  @Test func `a row whose key changes outlives its tombstone in the order of ids`() async throws {
    let rules = TestRules.rules([
      TestRules.definition(
        "by_list", table: TestRules.todos, bucket: "'[' || s.list_id || ']'", object: "s.title",
        data: "json_build_object('id', s.id)::text")
    ])
    try await withStage(Stage.todos, rules) { stage in
      try await stage.sequencing {
        _ = try await stage.app.query("INSERT INTO todos VALUES (5, 1, 'a'), (6, 1, 'b')")
        try await stage.settle()
        // The keys on both sides of the old ones, in their order as texts.
        _ = try await stage.app.query("UPDATE todos SET id = id + 3 WHERE title = 'a'")
        _ = try await stage.app.query("UPDATE todos SET id = id - 4 WHERE title = 'b'")
        try await stage.settle()
        try await stage.expectSound()
        let result = try await stage.app.query(
          """
          SELECT object_id, (array_agg(source_key ORDER BY id DESC))[1],
            (array_agg(data IS NULL ORDER BY id))::text
          FROM sluice.entries GROUP BY object_id ORDER BY object_id
          """)
        #expect((0..<2).map { result.string($0, 1) } == ["8", "2"])
        #expect((0..<2).map { result.string($0, 2) } == ["{t,f}", "{t,f}"])
      }
    }
  }
}
