import BucketStorage
import Postgres
import Synchronization
import Testing

/// Who leads, and what happens when the leader goes.
@Suite struct LeadershipTests {
  @Test func `a second sequencer waits, and takes over when the first is cut off`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        try await stage.sequencing {
          for round in 1...4 {
            try await stage.app.execute("INSERT INTO todos VALUES (\(round), 1, 'x')")
            try await stage.settle()
            let killed = try await stage.app.query(
              "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted "
                + "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
            #expect(killed.rowCount == 1)
          }
          try await stage.app.execute("INSERT INTO todos VALUES (9, 1, 'x')")
          try await stage.settle()
          let rows = try await stage.rows("1")
          #expect(rows.count == 5)
          try await stage.expectSound()
        }
      }
    }
  }

  @Test func `leaders killed in the middle of ticks leave whole ticks`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        let writer = try await stage.connect()
        async let writing: Void = {
          for number in 0..<120 {
            try await writer.execute(
              "INSERT INTO todos SELECT i, i % 5, 'n\(number)' FROM generate_series(1, 400) i "
                + "ON CONFLICT (id) DO UPDATE SET title = excluded.title, list_id = (todos.list_id + 1) % 5"
            )
          }
        }()
        for _ in 0..<15 {
          try await Task.sleep(for: .milliseconds(60))
          _ = try await stage.app.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
              + "AND query ~ 'sluice.entries|COMMIT|sluice.ticks' AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
          )
        }
        try await writing
        try await stage.settle()
        try await stage.expectSound()
        await writer.close()
      }
    }
  }

  @Test func `a rival's tick fences the leader off, which then goes on from it`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        try await stage.app.execute("INSERT INTO todos VALUES (1, 1, 'a')")
        try await stage.settle()
        for id in 2...4 {
          // A rival that consumed nothing: its snapshot is the leader's last.
          try await stage.app.execute(
            "INSERT INTO sluice.ticks SELECT number + 1, stamp, boundary_id + 16, snapshot, generation, "
              + "system_identifier, timeline, database FROM sluice.ticks ORDER BY number DESC LIMIT 1; "
              + "INSERT INTO todos VALUES (\(id), 1, 'b')")
          try await stage.settle()
          let rows = try await stage.rows("1")
          #expect(rows.count == id)
        }
        try await stage.expectSound()
      }
    }
  }

  @Test func `on another timeline ids jump, and the lost range is refused`() async throws {
    try await withStage { stage in
      try await stage.sequencing {
        try await stage.app.execute("INSERT INTO todos VALUES (1, 1, 'a'), (2, 1, 'b')")
        try await stage.settle()
      }
      let before = try await stage.store.head().tick
      // As after a failover: the last tick was made elsewhere, and its snapshot means nothing here.
      try await stage.app.execute(
        "UPDATE sluice.ticks SET timeline = 'FFFFFFFF', snapshot = '9999999:9999999:' WHERE number = \(before.number); "
          + "UPDATE todos SET title = 'c' WHERE id = 2; INSERT INTO todos VALUES (3, 1, 'd')")
      try await stage.sequencing {
        try await stage.until { try await stage.store.head().tick.number > before.number }
        try await stage.app.execute("INSERT INTO todos VALUES (4, 1, 'e')")
        try await stage.until { try await stage.rows("1").count == 4 }
        let after = try await stage.store.head().tick
        #expect(after.boundaryID - before.boundaryID > 1 << 36)
        let survival = try await stage.store.survival(of: [
          (before.stamp, before.boundaryID), (before.stamp, before.boundaryID + 16),
          (after.stamp, after.boundaryID), (after.stamp, after.boundaryID + 16),
          ("2001-01-01T00:00:00.000000Z", after.boundaryID), (before.stamp, 16),
        ])
        #expect(survival == [true, false, true, false, false, false])
        let kept = try await stage.app.query(
          "SELECT id FROM sluice.entries WHERE object_id = '1'")
        #expect(kept.int(0, 0)! < before.boundaryID)
        try await stage.expectSound()
      }
    }
  }
}
