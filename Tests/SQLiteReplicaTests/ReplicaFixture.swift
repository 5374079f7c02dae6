import Foundation
import SQLiteReplica
import SyncProtocol
import Testing

/// A replica in a folder of its own, and the lines to feed it.
final class ReplicaFixture {
  let folder: TemporaryFolder
  let path: String
  let replica: Replica
  let stamp = "2026-11-30T02:05:11.123456Z"

  init(
    folder: TemporaryFolder? = nil, configuration: Replica.Configuration = Replica.Configuration()
  ) async throws {
    self.folder = try folder ?? TemporaryFolder()
    path = self.folder.path("replica.db")
    replica = try await Replica.open(path: path, configuration: configuration)
  }

  static let todos = PublishedTable(
    name: "todos",
    columns: [
      PublishedColumn(name: "title", type: .text), PublishedColumn(name: "n", type: .integer),
    ])

  @discardableResult
  func send(_ line: [UInt8]) async throws -> ReplicaEvent {
    try await replica.receive(Array(line.dropLast()))
  }

  func send(schema tables: PublishedTable...) async throws {
    try await send(PublishedSchema(tables: tables).encodedLine())
  }

  @discardableResult
  func send(
    checkpoint tick: Int64, full: Bool = true, _ buckets: [BucketState], removed: [BucketName] = []
  ) async throws -> ReplicaEvent {
    try await send(
      CheckpointLine(
        tick: tick, stamp: stamp, id: tick * 16, full: full, buckets: buckets, removed: removed
      ).encodedLine())
  }

  /// A bucket whose rows' checksums have this XOR.
  func bucket(
    _ name: BucketName, _ count: Int64, digest: UInt64, priority: Int = 3, start: Int64 = 16,
    reset: Bool = false
  ) -> BucketState {
    BucketState(
      name: name, priority: priority, count: count, digest: digest, start: start, reset: reset)
  }

  /// Sends rows; each has its entry id for a checksum.
  func send(rows bucket: BucketName, _ rows: [(String, Int64, String?)], table: String = "todos")
    async throws
  {
    var encoder = RowsLineEncoder(bucket: bucket)
    for (object, id, data) in rows {
      encoder.append(
        RowOperation(
          table: table, objectID: object, stamp: stamp, id: id,
          checksum: data == nil ? 0 : UInt64(id), data: data))
    }
    try await send(
      encoder.finish(next: SyncPosition(stamp: stamp, id: rows.last?.1 ?? 0), more: false))
  }

  @discardableResult
  func complete(_ tick: Int64, priority: Int? = nil) async throws -> ReplicaEvent {
    try await send(CompleteLine(tick: tick, priority: priority).encodedLine())
  }

  /// What another process sees: rows as `id|title|n`.
  func rows(_ sql: String = "SELECT id, title, n FROM todos ORDER BY id") async throws -> [String] {
    let result = try await ReplicaReader.open(path: path).query(sql)
    return result.rows.map { row in
      row.map {
        switch $0 {
        case .null: "NULL"
        case .integer(let value): "\(value)"
        case .real(let value): "\(value)r"
        case .text(let value): value
        case .blob: "blob"
        }
      }.joined(separator: "|")
    }
  }
}
