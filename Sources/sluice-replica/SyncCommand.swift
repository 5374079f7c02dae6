import SQLiteReplica
import SluiceClient
import SyncProtocol

/// `sync`: to the newest checkpoint, once.
struct SyncCommand {
  private let arguments: Arguments

  init(_ arguments: Arguments) { self.arguments = arguments }

  func run() async throws {
    let client = try await arguments.connect()
    let started = ContinuousClock.now
    let isDone = try await sluice_replica.run(
      { try await client.syncOnce() }, observing: { await showProgress(of: client) })
    if Terminal.isInteractive { Terminal.writeOver("") }
    guard isDone else {
      throw SyncFailure(
        kind: .replica, code: "SLUICE_CLIENT_INTERRUPTED",
        message: "Syncing was interrupted; what was downloaded is kept.")
    }
    guard let checkpoint = try await client.replica.lastCheckpoint() else { return }
    let buckets = try await client.replica.buckets()
    let rows = buckets.reduce(0) { $0 + $1.rows }
    let elapsed = ContinuousClock.now - started
    switch arguments.format {
    case .text:
      Terminal.writeLine(
        "tick \(checkpoint.tick): \(rows) rows in \(buckets.count) buckets, after \(elapsed.milliseconds) ms"
      )
    case .json:
      var writer = JSONWriter()
      writer.append(literal: "{\"tick\":")
      writer.append(checkpoint.tick)
      writer.append(literal: ",\"stamp\":")
      writer.append(string: checkpoint.stamp)
      writer.append(literal: ",\"buckets\":")
      writer.append(Int64(buckets.count))
      writer.append(literal: ",\"rows\":")
      writer.append(rows)
      writer.append(literal: ",\"elapsed_ms\":")
      writer.append(elapsed.milliseconds)
      writer.append(literal: "}\n")
      Terminal.write(String(decoding: writer.take(), as: UTF8.self))
    }
    let troubles = client.status.subscriptions.compactMap(\.trouble)
    guard troubles.isEmpty else { throw SubscriptionTroubles(texts: troubles) }
  }

  private func showProgress(of client: SyncClient) async {
    guard Terminal.isInteractive, arguments.format == .text else { return }
    for await status in client.statuses {
      if let download = status.download {
        Terminal.writeOver(Terminal.progress(download.downloaded, of: download.expected))
      } else if let failure = status.failure {
        Terminal.writeOver(failure.message)
      }
    }
  }
}

/// Subscriptions that gave nothing, or not everything.
struct SubscriptionTroubles: Error, CustomStringConvertible {
  let texts: [String]

  var description: String { texts.joined(separator: "\n") }
}

extension SubscriptionStatus {
  /// What went wrong, in a line that names the subscription.
  var trouble: String? {
    failure.map { "\(stream)\(parameters.map { $0 == "{}" ? "" : " \($0)" } ?? ""): \($0)" }
  }
}

extension Duration {
  /// Whole milliseconds.
  var milliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
