import Foundation
import SQLiteReplica
import SyncProtocol
import Testing

@Suite("A replica beside a model of the gateway")
struct ReplicaModelTests {
  @Test(
    "shows exactly one tick at a time, whatever is cut off or killed",
    arguments: 0..<40 as Range<UInt64>)
  func random(seed: UInt64) async throws {
    let folder = try TemporaryFolder()
    let gateway = ModelGateway(seed: seed)
    var random = Splitmix(state: seed &+ 1_000_000)
    var path = folder.path("replica-0.db")
    var configuration = Replica.Configuration()
    configuration.stageMemory = seed % 2 == 0 ? 300 : 1 << 20
    var replica = try await Replica.open(path: path, configuration: configuration)
    var shownTick: Int64?
    for round in 1...12 {
      let start = try await replica.begin()
      var linesLeft = random.next(below: 3) == 0 ? Int.max : Int(random.next(below: 40))
      do {
        try await gateway.serve(
          schemaHash: start.schema, positions: start.positions,
          live: Int(random.next(below: 4))
        ) { line in
          linesLeft -= 1
          if linesLeft < 0 { throw ModelGateway.Cut() }
          if case .applied(let checkpoint) = try await replica.receive(Array(line.dropLast())) {
            shownTick = checkpoint.priority == nil ? checkpoint.tick : nil
          }
          if let shownTick {
            #expect(
              try await rows(path) == gateway.expected[shownTick], "seed \(seed), tick \(shownTick)"
            )
          }
        }
      } catch is ModelGateway.Cut {}
      if random.next(below: 2) == 0 {
        try await replica.end()
      } else {
        // As after kill -9: the files as they are, and nothing of what was in memory.
        let copy = folder.path("replica-\(round).db")
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
          try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
        }
        path = copy
        replica = try await Replica.open(path: path, configuration: configuration)
      }
    }
    let start = try await replica.begin()
    try await gateway.serve(schemaHash: start.schema, positions: start.positions, live: 0) {
      if case .applied(let checkpoint) = try await replica.receive(Array($0.dropLast())),
        checkpoint.priority == nil
      {
        shownTick = checkpoint.tick
      }
    }
    let last = try #require(shownTick)
    #expect(try await rows(path) == gateway.expected[last])
  }

  private func rows(_ path: String) async throws -> [String: ModelGateway.Row] {
    let reader = try await ReplicaReader.open(path: path)
    var rows: [String: ModelGateway.Row] = [:]
    for table in ["todos", "no\"tes"] {
      let name = "\"" + table.replacingOccurrences(of: "\"", with: "\"\"") + "\""
      guard let result = try? await reader.query("SELECT id, a, n FROM \(name)") else { continue }
      for row in result.rows {
        guard case .text(let id) = row[0], case .text(let a) = row[1], case .integer(let n) = row[2]
        else {
          Issue.record("A row has values of other types.")
          continue
        }
        rows["\(table)/\(id)"] = ModelGateway.Row(a: a, n: n)
      }
    }
    return rows
  }
}

/// A folder that goes with the test.
final class TemporaryFolder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent(
      "sluice-replica-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appendingPathComponent(name).path }
}
