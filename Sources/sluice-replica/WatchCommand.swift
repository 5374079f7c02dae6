import SQLiteReplica
import SluiceClient
import SyncProtocol

/// `watch`: stays connected and tells each checkpoint as it becomes visible.
struct WatchCommand {
  private let arguments: Arguments

  init(_ arguments: Arguments) { self.arguments = arguments }

  func run() async throws {
    let client = try await arguments.connect()
    let checkpoints = client.checkpoints
    let statuses = client.statuses
    _ = try await sluice_replica.run(
      { try await client.run() },
      observing: {
        await withTaskGroup(of: Void.self) { group in
          group.addTask {
            for await checkpoint in checkpoints { show(checkpoint) }
          }
          group.addTask { await showTroubles(statuses) }
        }
      })
  }

  private func show(_ checkpoint: AppliedCheckpoint) {
    // From the moment of the tick to now, by two computers' clocks.
    let latency = Stamp.microseconds(checkpoint.stamp).map { WallClock.microseconds() - $0 }
    switch arguments.format {
    case .text:
      let tables = checkpoint.tables.sorted().joined(separator: ", ")
      Terminal.writeLine(
        "tick \(checkpoint.tick)\(checkpoint.priority.map { " up to priority \($0)" } ?? ""): "
          + "\(checkpoint.rowsChanged) rows changed\(tables.isEmpty ? "" : " in \(tables)")"
          + (latency.map { ", \($0 / 1000) ms after the tick" } ?? ""))
    case .json:
      var writer = JSONWriter()
      writer.append(literal: "{\"tick\":")
      writer.append(checkpoint.tick)
      writer.append(literal: ",\"stamp\":")
      writer.append(string: checkpoint.stamp)
      writer.append(literal: ",\"priority\":")
      if let priority = checkpoint.priority {
        writer.append(Int64(priority))
      } else {
        writer.append(literal: "null")
      }
      writer.append(literal: ",\"rows_changed\":")
      writer.append(checkpoint.rowsChanged)
      writer.append(literal: ",\"tables\":[")
      for (index, table) in checkpoint.tables.sorted().enumerated() {
        if index > 0 { writer.append(literal: ",") }
        writer.append(string: table)
      }
      writer.append(literal: "],\"latency_us\":")
      writer.append(latency ?? 0)
      writer.append(literal: "}\n")
      Terminal.write(String(decoding: writer.take(), as: UTF8.self))
    }
  }

  private func showTroubles(_ statuses: AsyncStream<SyncStatus>) async {
    var shown: SyncFailure?
    var troubles: Set<String> = []
    var barIsOpen = false
    for await status in statuses {
      if let failure = status.failure, failure != shown { Terminal.writeError("\(failure)") }
      if status.failure == nil, shown != nil { Terminal.writeError("connected again") }
      shown = status.failure
      for trouble in status.subscriptions.compactMap(\.trouble)
      where troubles.insert(trouble).inserted {
        Terminal.writeError(trouble)
      }
      guard Terminal.isInteractive, arguments.format == .text else { continue }
      if let download = status.download, download.expected > 1000 {
        Terminal.writeOver(Terminal.progress(download.downloaded, of: download.expected))
        barIsOpen = true
      } else if barIsOpen {
        Terminal.writeOver("")
        barIsOpen = false
      }
    }
  }
}
