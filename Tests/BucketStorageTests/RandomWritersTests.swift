import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// Writers that do anything in any order, compared with the rules evaluated anew.
@Suite struct RandomWritersTests {
  /// Two definitions, one of which divides what the other holds.
  private static let rules = TestRules.rules([
    TestRules.definition(
      "by_list", table: TestRules.todos, bucket: "'[' || s.list_id || ']'",
      data: "json_build_object('title', s.title)::text"),
    TestRules.definition(
      "even", table: TestRules.todos, bucket: "'[' || s.id % 3 || ']'",
      data: "json_build_object('list', s.list_id, 'e', j.e)::text",
      condition: "s.id % 2 = 0", usesSubkey: true,
      joins: "CROSS JOIN LATERAL generate_series(1, 1 + s.list_id % 2) j(e)"),
  ])

  private struct Writer {
    let connection: PostgresConnection
    let name: String
    var isOpen = false
    var depth = 0

    /// One random step; errors of the application's own making end its transaction.
    mutating func step(_ random: inout SeededGenerator) async throws {
      let sql = next(&random)
      do {
        try await connection.execute(sql)
      } catch let error as PostgresError where !error.isConnectionFailure {
        isOpen = false
        depth = 0
        try await connection.execute("ROLLBACK")
      }
    }

    private mutating func next(_ random: inout SeededGenerator) -> String {
      let (id, list) = (
        Int.random(in: 1...60, using: &random), Int.random(in: 1...4, using: &random)
      )
      switch Int.random(in: 0..<16, using: &random) {
      case 0 where !isOpen:
        isOpen = true
        return "BEGIN"
      case 1 where isOpen && depth < 3:
        depth += 1
        return "SAVEPOINT s\(depth)"
      case 2 where depth > 0:
        depth -= 1
        return "ROLLBACK TO s\(depth + 1)"
      case 3 where depth > 0:
        depth -= 1
        return "RELEASE s\(depth + 1)"
      case 4 where isOpen, 5 where isOpen:
        (isOpen, depth) = (false, 0)
        return "COMMIT"
      case 6 where isOpen:
        (isOpen, depth) = (false, 0)
        return "ROLLBACK"
      case 7 where isOpen:
        (isOpen, depth) = (false, 0)
        return "PREPARE TRANSACTION '\(name)'"
      case 8 where !isOpen:
        return "COMMIT PREPARED '\(name)'"
      case 9, 10:
        return "UPDATE todos SET list_id = \(list), title = title || '.' WHERE id % 8 = \(id % 8)"
      case 11:
        return "DELETE FROM todos WHERE id IN (\(id), \(id + 1))"
      case 12:
        return "UPDATE todos SET id = id + 100 WHERE id = \(id)"
      case 13 where id < 4 && !isOpen:
        return "TRUNCATE todos"
      case 14 where id < 8 && !isOpen:
        return "VACUUM FULL todos"
      default:
        return "INSERT INTO todos VALUES (\(id), \(list), 'n') "
          + "ON CONFLICT (id) DO UPDATE SET list_id = excluded.list_id, title = 'u'"
      }
    }
  }

  @Test(arguments: 0..<4)
  func `entries are the rules applied to a snapshot, whatever is written`(_ run: Int) async throws {
    let seed = SeededGenerator().seed
    try await withStage(Stage.todos, Self.rules) { stage in
      let steps = Task { () async throws in
        var random = SeededGenerator(seed: seed &+ UInt64(run))
        var writers: [Writer] = []
        for number in 0..<4 {
          let connection = try await stage.database.connect(
            settings: ["search_path": "public", "lock_timeout": "50ms", "deadlock_timeout": "20ms"])
          writers.append(Writer(connection: connection, name: "\(stage.database.name)-\(number)"))
        }
        for step in 0..<400 {
          let index = Int.random(in: 0..<writers.count, using: &random)
          try await writers[index].step(&random)
          if step % 40 == 39 { try await stage.expectSound() }
        }
        for writer in writers {
          if writer.isOpen { try await writer.connection.execute("ROLLBACK") }
          try? await writer.connection.execute("COMMIT PREPARED '\(writer.name)'")
          await writer.connection.close()
        }
      }
      try await stage.sequencing { try await steps.value }
      try await stage.sequencing { try await stage.settle() }
      try await stage.expectSound()
      for list in 1...4 {
        let held = try await stage.rows("\(list)", definition: "by_list").keys.compactMap {
          Int($0)
        }
        let rows = try await stage.app.query("SELECT id FROM todos WHERE list_id = \(list)")
        let expected = (0..<rows.rowCount).map { Int(rows.int($0, 0)!) }
        #expect(held.sorted() == expected.sorted(), "seed \(seed), run \(run)")
      }
    }
  }
}
