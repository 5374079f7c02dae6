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
}
