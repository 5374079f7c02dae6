import SQLiteReplica
import SyncProtocol

/// `status`: what the replica holds, from its database alone.
struct StatusCommand {
  private let arguments: Arguments

  init(_ arguments: Arguments) { self.arguments = arguments }

  func run() async throws {
    let reader = try await ReplicaReader.open(path: try arguments.database())
    let summary = try await reader.summary()
    switch arguments.format {
    case .text: Terminal.write(text(summary))
    case .json: Terminal.write(json(summary))
    }
  }

  private func text(_ summary: ReplicaSummary) -> String {
    var lines: [String] = []
    if let checkpoint = summary.checkpoint {
      lines.append("checkpoint  tick \(checkpoint.tick) of \(checkpoint.stamp)")
      lines.append("applied     \(checkpoint.appliedAt)")
    } else {
      lines.append("checkpoint  none yet")
    }
    lines.append("staged      \(summary.stagedOperations) rows")
    lines.append("buckets     \(summary.buckets.count)")
    for bucket in summary.buckets { lines.append("  \(bucket.name)  \(bucket.rows)") }
    lines.append("tables      \(summary.tables.count)")
    for table in summary.tables { lines.append("  \(table.name)  \(table.rows)") }
    return lines.joined(separator: "\n") + "\n"
  }

  private func json(_ summary: ReplicaSummary) -> String {
    var writer = JSONWriter()
    writer.append(literal: "{\"tick\":")
    if let checkpoint = summary.checkpoint {
      writer.append(checkpoint.tick)
      writer.append(literal: ",\"stamp\":")
      writer.append(string: checkpoint.stamp)
      writer.append(literal: ",\"applied_at\":")
      writer.append(string: checkpoint.appliedAt)
    } else {
      writer.append(literal: "null")
    }
    writer.append(literal: ",\"staged\":")
    writer.append(summary.stagedOperations)
    for (key, items) in [("buckets", summary.buckets), ("tables", summary.tables)] {
      writer.append(literal: ",")
      writer.append(string: key)
      writer.append(literal: ":[")
      for (index, item) in items.enumerated() {
        if index > 0 { writer.append(literal: ",") }
        writer.append(literal: "{\"name\":")
        writer.append(string: item.name)
        writer.append(literal: ",\"rows\":")
        writer.append(item.rows)
        writer.append(literal: "}")
      }
      writer.append(literal: "]")
    }
    writer.append(literal: "}\n")
    return String(decoding: writer.take(), as: UTF8.self)
  }
}
