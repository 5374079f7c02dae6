import Foundation
import HTTPTransport
import SyncProtocol
import Synchronization
import Testing

@testable import SQLiteReplica
@testable import SluiceClient

/// Answers requests from a script, and keeps them.
final class ScriptedTransport: HTTPTransport {
  struct Answer: Sendable {
    var status = 200
    var headers: [(name: String, value: String)] = []
    var lines: [[UInt8]] = []
    /// Whether the body goes on without end after its lines.
    var isOpen = false
  }

  private struct State {
    var answers: [Answer]
    var requests: [TransportRequest] = []
  }

  private let state: Mutex<State>

  init(_ answers: [Answer]) { state = Mutex(State(answers: answers)) }

  var requests: [TransportRequest] { state.withLock { $0.requests } }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let answer = state.withLock { state -> Answer? in
      state.requests.append(request)
      return state.answers.isEmpty ? nil : state.answers.removeFirst()
    }
    guard let answer else { throw TransportError(.unreachable, "nobody there") }
    let rest = Mutex(answer.lines)
    let body = TransportBody(pull: {
      if let line = rest.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return line }
      if answer.isOpen { try await Task.sleep(for: .seconds(3600)) }
      return nil
    })
    return TransportResponse(status: answer.status, headers: answer.headers, body: body)
  }
}

@Suite("A client and a scripted gateway")
struct SyncClientTests {
  private let stamp = "2026-11-30T02:05:11.123456Z"
  private let schema = PublishedSchema(tables: [
    PublishedTable(name: "todos", columns: [PublishedColumn(name: "n", type: .integer)])
  ])

  private func checkpoint(_ tick: Int64) -> [UInt8] {
    let digest = (1...UInt64(tick)).reduce(0) { $0 ^ $1 }
    return CheckpointLine(
      tick: tick, stamp: stamp, id: tick * 16 + 16, full: true,
      buckets: [
        BucketState(name: "b", priority: 3, count: tick, digest: digest, start: 16, reset: false)
      ]
    ).encodedLine()
  }

  private func row(_ number: Int64) -> [UInt8] {
    var encoder = RowsLineEncoder(bucket: "b")
    encoder.append(
      RowOperation(
        table: "todos", objectID: "t\(number)", stamp: stamp, id: number * 16 + 1,
        checksum: UInt64(number), data: "{\"n\":\(number)}"))
    return encoder.finish(
      next: SyncPosition(stamp: stamp, id: number * 16 + 1), more: false)
  }

  private func client(
    _ folder: TemporaryFolder, _ transport: ScriptedTransport,
    token: @escaping SyncClient.TokenProvider = { "token" }
  ) async throws -> SyncClient {
    var options = SyncClient.Options()
    options.sleep = { _ in }
    options.jitter = { 1 }
    return try SyncClient(
      url: "http://gateway/", replica: try await Replica.open(path: folder.path("r.db")),
      options: options, transport: transport, token: token)
  }

  @Test("syncs once, from the schema to the rows")
  func once() async throws {
    let folder = try TemporaryFolder()
    let transport = ScriptedTransport([
      .init(lines: [
        schema.encodedLine(), checkpoint(1), row(1), CompleteLine(tick: 1).encodedLine(),
      ])
    ])
    let client = try await client(folder, transport)
    try await client.syncOnce()
    #expect(client.status.lastCheckpoint?.tick == 1 && client.status.failure == nil)
    let request = try #require(transport.requests.first)
    #expect(request.url == "http://gateway/v1/stream" && request.method == "POST")
    #expect(request.headers.contains { $0.name == "Authorization" && $0.value == "Bearer token" })
    let rows = try await ReplicaReader.open(path: folder.path("r.db")).query("SELECT * FROM todos")
    #expect(rows == QueryResult(columns: ["id", "n"], rows: [["t1", 1]]))
  }

  @Test("goes on from where the line broke, also when a byte at a time arrives")
  func reconnect() async throws {
    let folder = try TemporaryFolder()
    let first = [schema.encodedLine(), checkpoint(2), row(1)].flatMap { $0 }
    let transport = ScriptedTransport([
      .init(lines: first.map { [$0] } + [Array(row(2).prefix(20))]),
      .init(lines: [
        schema.encodedLine() + checkpoint(2) + row(2), CompleteLine(tick: 2).encodedLine(),
      ]),
    ])
    let client = try await client(folder, transport)
    try await client.syncOnce()
    let second = try StreamRequest(decoding: try #require(transport.requests.last?.body))
    #expect(second.buckets == ["b": SyncPosition(stamp: stamp, id: 17, start: 16)])
    #expect(second.schema == nil && second.clientID?.count == 32)
    #expect(try await client.replica.buckets().map(\.rows) == [2])
  }

  @Test("asks for another token when the first is refused, and reports a lasting refusal")
  func tokens() async throws {
    let folder = try TemporaryFolder()
    let refusal = ErrorBody(code: "SLUICE_AUTH_SIGNATURE", message: "No.").encodedLine()
    let transport = ScriptedTransport(
      Array(repeating: .init(status: 401, lines: [refusal]), count: 3))
    let asked = Mutex(0)
    let client = try await client(folder, transport) {
      let count = asked.withLock {
        $0 += 1
        return $0
      }
      return "token \(count)"
    }
    await #expect { try await client.syncOnce() } throws: {
      ($0 as? SyncFailure)?.code == "SLUICE_AUTH_SIGNATURE"
    }
    #expect(
      transport.requests.map { $0.headers[0].value }
        == ["Bearer token 1", "Bearer token 2", "Bearer token 3"])
    #expect(client.status.connection == .idle)
  }

  @Test("runs until it is cancelled, telling each checkpoint")
  func run() async throws {
    let folder = try TemporaryFolder()
    let transport = ScriptedTransport([
      .init(status: 503, headers: [(name: "Retry-After", value: "5")]),
      .init(
        lines: [
          schema.encodedLine(), checkpoint(1), row(1), CompleteLine(tick: 1).encodedLine(),
          checkpoint(2), row(2), CompleteLine(tick: 2).encodedLine(),
        ], isOpen: true),
    ])
    let client = try await client(folder, transport)
    let checkpoints = client.checkpoints
    let running = Task { try await client.run() }
    var ticks: [Int64] = []
    for await checkpoint in checkpoints {
      ticks.append(checkpoint.tick)
      if ticks.count == 2 { break }
    }
    #expect(ticks == [1, 2])
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
    #expect(client.status.connection == .idle)
  }

  @Test("a replica without room says so, waits, and goes on once there is some")
  func fullReplica() async throws {
    let folder = try TemporaryFolder()
    func line(_ number: Int64) -> [UInt8] {
      var encoder = RowsLineEncoder(bucket: "b")
      encoder.append(
        RowOperation(
          table: "todos", objectID: "t\(number)" + String(repeating: "x", count: 300_000),
          stamp: stamp, id: number * 16 + 1, checksum: UInt64(number), data: "{\"n\":1}"))
      return encoder.finish(
        next: SyncPosition(stamp: stamp, id: number * 16 + 1), more: false)
    }
    let answer = ScriptedTransport.Answer(
      lines: [schema.encodedLine(), checkpoint(1), line(1), CompleteLine(tick: 1).encodedLine()],
      isOpen: true)
    let transport = ScriptedTransport(Array(repeating: answer, count: 4))
    let replica = try await Replica.open(path: folder.path("r.db"))
    try await replica.limit(toFurtherPages: 0)
    var options = SyncClient.Options()
    options.jitter = { 1 }
    let waits = Mutex(0)
    options.sleep = { _ in
      let count = waits.withLock {
        $0 += 1
        return $0
      }
      if count == 3 { try await replica.limit(toFurtherPages: nil) }
    }
    let client = try SyncClient(
      url: "http://gateway/", replica: replica, options: options, transport: transport
    ) { "token" }
    let statuses = client.statuses
    let running = Task { try await client.run() }
    var codes: Set<String> = []
    for await status in statuses {
      if let failure = status.failure { codes.insert(failure.code) }
      if status.lastCheckpoint?.tick == 1 { break }
    }
    #expect(codes == ["SLUICE_REPLICA_FULL"])
    #expect(waits.withLock { $0 } >= 3)
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
    #expect(try await replica.buckets().map(\.rows) == [1])
  }

  @Test("parameters that are no JSON object are refused at once")
  func parameters() async throws {
    let folder = try TemporaryFolder()
    let replica = try await Replica.open(path: folder.path("r.db"))
    for text in ["", "[]", "{", "{}x", "{\"a\":\"\\u0000\"}"] {
      var options = SyncClient.Options()
      options.parameters = text
      #expect(throws: SyncFailure.self) {
        _ = try SyncClient(url: "http://x", replica: replica, options: options) { "" }
      }
    }
  }
}

extension Replica {
  /// Lets the database grow by so many pages and no further; nil lifts the limit.
  fileprivate func limit(toFurtherPages count: Int64?) throws {
    let size = try store.connection.rows("PRAGMA page_count").first?.first?.integer ?? 0
    let limit = count.map { size + $0 } ?? 4_294_967_294
    _ = try store.connection.rows("PRAGMA max_page_count = \(limit)")
  }
}

/// A folder that goes with the test.
final class TemporaryFolder {
  private let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent(
      "sluice-client-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appendingPathComponent(name).path }
}
