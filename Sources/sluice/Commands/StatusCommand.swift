import BucketStorage
import Foundation

/// Tells how the storage is doing.
enum StatusCommand: Subcommand {
  static let description = CommandDescription(
    name: "status", summary: "Show the tick, the leader, the definitions and the captured tables.",
    options: [.config, .database, .format])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let report = try await DatabaseAccess(arguments).withConnection {
      try await StatusReader().read($0)
    }
    if arguments.wantsJSON {
      try console.print(json: report)
    } else {
      console.print(text(report))
    }
    return .done
  }

  private static func text(_ report: StatusReport) -> String {
    let age = report.secondsSinceTick.formatted(.number.precision(.fractionLength(1)))
    var lines = ["tick \(report.tick) at \(report.stamp), \(age) s ago"]
    lines.append(
      report.leader.map { "leader: server process \($0)" } ?? "leader: none, no ticks are made")
    lines.append(
      "inbox: \(report.inboxBytes / 1024) kB, "
        + (report.hasPendingChanges ? "changes wait for a tick" : "nothing waits"))
    if let oldest = report.oldestTransaction, oldest > 60 {
      lines.append("the oldest open transaction is \(Int(oldest)) s old and keeps the inbox full")
    }
    lines.append("rules: generation \(report.generation)")
    if let building = report.buildingGeneration {
      lines.append("building generation \(building)")
    }
    for definition in report.definitions {
      var line = "  \(definition.name)"
      if let stream = definition.stream { line += " of stream \(stream)" }
      line += "  \(definition.state)"
      line += "  \(definition.buckets) buckets  \(definition.rows) rows"
      if definition.state == "building" { line += "  \(definition.rowsRead) rows read" }
      lines.append(line)
      if let suspended = definition.suspended { lines.append("    stands still: \(suspended)") }
    }
    for source in report.sources where source.uncaptured > 0 {
      lines.append("\(source.schema).\(source.name) lacks capture triggers")
    }
    return lines.joined(separator: "\n")
  }
}
