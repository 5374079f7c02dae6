import Foundation
import SyncProtocol
import Testing

@testable import SQLiteReplica

extension Replica {
  /// Lets the database grow by so many pages and no further; nil lifts the limit.
  func limit(toFurtherPages count: Int64?) throws {
    let size = try store.connection.rows("PRAGMA page_count").first?.first?.integer ?? 0
    let limit = count.map { size + $0 } ?? 4_294_967_294
    _ = try store.connection.rows("PRAGMA max_page_count = \(limit)")
  }
}

@Suite("A replica whose disk is full")
struct FullReplicaTests {
  private static let text = String(repeating: "x", count: 2_000)

  /// Sends tick `tick`: rows 0..<count of the bucket b, each with the tick for its number.
  private func send(_ fixture: ReplicaFixture, _ tick: Int64, count: Int64) async throws {
    let start = try await fixture.replica.begin()
    if start.schema == nil { try await fixture.send(schema: ReplicaFixture.todos) }
    let ids = (0..<count).map { tick * 16_000 + $0 * 16 + 1 }
    let digest = ids.reduce(UInt64(0)) { $0 ^ UInt64($1) }
    try await fixture.send(checkpoint: tick, [fixture.bucket("b", count, digest: digest)])
    for (row, id) in ids.enumerated() where id > start.positions["b"]?.id ?? 0 {
      try await fixture.send(
        rows: "b", [("t\(row)", id, "{\"title\":\"\(Self.text)\",\"n\":\(tick)}")])
    }
    try await fixture.complete(tick)
  }

  @Test(
    "shows the checkpoint before, whole, and goes on once there is room",
    arguments: [0, 2, 20, 60, 120] as [Int64])
  func full(pages: Int64) async throws {
    var configuration = Replica.Configuration()
    configuration.stageMemory = 0
    let fixture = try await ReplicaFixture(configuration: configuration)
    try await send(fixture, 2, count: 50)
    // Neither the first download nor the staging of a later one fits.
    try await fixture.replica.limit(toFurtherPages: pages)
    let error = await #expect(throws: ReplicaError.self) {
      try await send(fixture, 3, count: 400)
    }
    #expect(error?.code == "SLUICE_REPLICA_FULL")
    #expect(error?.message == "There is no room for the replica's database: the disk is full.")
    #expect(try await fixture.rows("SELECT DISTINCT n, count(*) OVER () FROM todos") == ["2|50"])
    #expect(try await fixture.rows("PRAGMA integrity_check") == ["ok"])

    try await fixture.replica.limit(toFurtherPages: nil)
    try await fixture.replica.end()
    try await send(fixture, 3, count: 400)
    #expect(try await fixture.rows("SELECT DISTINCT n, count(*) OVER () FROM todos") == ["3|400"])
    #expect(try await fixture.rows("PRAGMA integrity_check") == ["ok"])
  }

  @Test("during the first download keeps what came, and goes on from there")
  func firstDownload() async throws {
    var configuration = Replica.Configuration()
    configuration.stageMemory = 0
    let fixture = try await ReplicaFixture(configuration: configuration)
    try await fixture.replica.limit(toFurtherPages: 60)
    let error = await #expect(throws: ReplicaError.self) {
      try await send(fixture, 2, count: 400)
    }
    #expect(error?.code == "SLUICE_REPLICA_FULL")
    let kept = try await fixture.replica.stagedOperations()
    #expect(kept > 0 && kept < 400)
    let reopened = try await ReplicaFixture(folder: fixture.folder, configuration: configuration)
    #expect(try await reopened.replica.stagedOperations() == kept)
    try await send(reopened, 2, count: 400)
    #expect(try await reopened.rows("SELECT DISTINCT n, count(*) OVER () FROM todos") == ["2|400"])
    #expect(try await reopened.rows("PRAGMA integrity_check") == ["ok"])
  }
}
