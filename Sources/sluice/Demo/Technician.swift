import Foundation
import SQLiteReplica
import SluiceClient

/// Somebody with a replica: the client that keeps it in step, and a reader of its file beside it.
struct Technician: Sendable {
  let name: String
  /// The claim `skills` of the token.
  let skills: String
  let file: String
  let tokenFile: String
  let client: SyncClient
  private let reader: ReplicaReader

  init(name: String, skills: String, token: String, url: String, folder: URL) async throws {
    self.name = name
    self.skills = skills
    file = folder.appending(path: "\(name).db").path
    tokenFile = folder.appending(path: "\(name).token").path
    try Data((token + "\n").utf8).write(to: URL(filePath: tokenFile))
    client = try SyncClient(url: url, replica: try await Replica.open(path: file)) { token }
    reader = try await ReplicaReader.open(path: file)
  }

  /// The rows that a query gives, each value as text.
  func rows(_ query: String) async throws -> [[String?]] {
    try await reader.query(query).rows.map { row in
      row.map { value in
        switch value {
        case .null: nil
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): text
        case .blob(let bytes): String(decoding: bytes, as: UTF8.self)
        }
      }
    }
  }

  func count(_ from: String) async throws -> Int {
    try await rows("SELECT count(*) FROM \(from)").first?.first.flatMap { $0 }.flatMap { Int($0) }
      ?? 0
  }

  /// Waits until the file answers `query` with `wanted`, and gives the moment at which it did.
  func shows(
    _ wanted: String, _ query: String, within limit: Duration = .seconds(30)
  ) async throws -> ContinuousClock.Instant {
    // Listening begins before the first look, so that nothing is missed between the two.
    let checkpoints = client.checkpoints
    return try await withThrowingTaskGroup(of: ContinuousClock.Instant.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        if try await answer(query) == wanted { return .now }
        for await _ in checkpoints where try await answer(query) == wanted { return .now }
        throw CancellationError()
      }
      group.addTask {
        try await Task.sleep(for: limit)
        throw CommandFailure(
          .failed, "\(name)'s replica did not show \"\(wanted)\" within \(limit): \(query)")
      }
      guard let instant = try await group.next() else { throw CancellationError() }
      return instant
    }
  }

  private func answer(_ query: String) async throws -> String? {
    try await rows(query).first?.first.flatMap { $0 }
  }
}
