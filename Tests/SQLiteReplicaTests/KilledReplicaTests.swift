import Foundation
import SQLiteReplica
import SyncProtocol
import Synchronization
import Testing

@Suite("A replica whose process is killed")
struct KilledReplicaTests {
  /// Brings `replica` from nothing to tick 2 and on to tick 3; lines are written to the database as they come.
  private static func sync(_ path: String, killAtStep: Int?) async throws {
    let steps = Mutex(0)
    var configuration = Replica.Configuration()
    configuration.stageMemory = 0
    configuration.onStep = {
      let step = steps.withLock {
        $0 += 1
        return $0
      }
      if step == killAtStep { kill(getpid(), SIGKILL) }
    }
    let replica = try await Replica.open(path: path, configuration: configuration)
    let stamp = "2026-11-30T02:05:11.123456Z"
    func send(_ line: [UInt8]) async throws {
      _ = try await replica.receive(Array(line.dropLast()))
    }
    for tick in [2, 3] as [Int64] {
      if try await replica.lastCheckpoint()?.tick ?? 0 >= tick { continue }
      let start = try await replica.begin()
      if start.schema == nil {
        try await send(PublishedSchema(tables: [ReplicaFixture.todos]).encodedLine())
      }
      let digest = (0..<20).reduce(0) { $0 ^ UInt64(tick * 1000 + $1) }
      try await send(
        CheckpointLine(
          tick: tick, stamp: stamp, id: tick == 2 ? 2032 : 3024, full: true,
          buckets: [
            BucketState(name: "b", priority: 3, count: 20, digest: digest, start: 16, reset: false)
          ]
        ).encodedLine())
      for row in 0..<20 as Range<Int64> where tick * 1000 + row > start.positions["b"]?.id ?? 0 {
        var encoder = RowsLineEncoder(bucket: "b")
        encoder.append(
          RowOperation(
            table: "todos", objectID: "t\(row)", stamp: stamp, id: tick * 1000 + row,
            checksum: UInt64(tick * 1000 + row), data: "{\"n\":\(tick)}"))
        try await send(
          encoder.finish(next: SyncPosition(stamp: stamp, id: tick * 1000 + row), more: true))
      }
      try await send(CompleteLine(tick: tick).encodedLine())
    }
  }

  private func content(_ path: String) async throws -> [SQLiteValue] {
    let reader = try await ReplicaReader.open(path: path)
    guard let rows = try? await reader.query("SELECT DISTINCT n, count(*) OVER () FROM todos")
    else {
      return []
    }
    return rows.rows.flatMap { $0 }
  }

  /// Each whole checkpoint has 3 steps and one for each of its 20 lines.
  @Test(
    "while it applies a checkpoint shows the one before, and goes on to the next",
    arguments: [1, 2, 3, 11, 22, 23, 24, 25, 26, 40, 45, 46])
  func killed(step: Int) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("replica.db")
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, step = step as Int] in
      try await KilledReplicaTests.sync(path, killAtStep: step)
    }
    #expect(try await content(path) == (step <= 23 ? [] : [2, 20]))
    try await KilledReplicaTests.sync(path, killAtStep: nil)
    #expect(try await content(path) == [3, 20])
  }
}
