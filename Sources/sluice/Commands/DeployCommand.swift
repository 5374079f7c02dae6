import BucketStorage
import Foundation
import SQLGeneration
import SyncRules
import SyncService

/// Brings rules into force, or says what that would change.
enum DeployCommand: Subcommand {
  static let description = CommandDescription(
    name: "deploy", summary: "Bring rules into force; what did not change goes on undisturbed.",
    arguments: [
      .init(
        name: "RULES", help: "the rules file; the configured one if left out", isRequired: false)
    ],
    options: [
      .config, .database, .format,
      .flag("--dry-run", "only say what would change, for how many buckets and rows"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let access = try DatabaseAccess(arguments)
    let path = try access.rulesPath(arguments)
    let pipeline = try RulesPipeline.run(path: path, catalog: try await access.catalog())
    let rules = try pipeline.requireCompiled(console)
    let deployer = deployer(access)
    let plan = try await deployer.plan(rules)
    if arguments.wantsJSON {
      try console.print(json: PlanSummary(plan))
    } else {
      console.print(PlanSummary(plan).text)
    }
    guard !arguments.has("--dry-run") else { return .done }
    try await deploy(rules, source: pipeline.file.text, with: deployer, console)
    if !arguments.wantsJSON { console.print("in force") }
    return .done
  }

  static func deployer(_ access: DatabaseAccess) -> Deployer {
    Deployer(
      configuration: access.postgres(), loop: access.loop,
      options: GatewayServices.sequencer(access.configuration))
  }

  static func deploy(
    _ rules: CompiledRules, source: String, with deployer: Deployer, _ console: Console
  ) async throws {
    let start = ContinuousClock.now
    defer { console.endProgress() }
    try await deployer.deploy(rules, source: source) { progress in
      let seconds = (ContinuousClock.now - start).components.seconds
      switch progress.stage {
      case .capturing: console.progress("making capture triggers")
      case .building where progress.rowsToRead > 0:
        let share = min(100, progress.rowsRead * 100 / progress.rowsToRead)
        console.progress(
          "reading \(progress.rowsRead) of about \(progress.rowsToRead) rows, \(share) %, \(seconds) s"
        )
      case .building: console.progress("building, \(seconds) s")
      case .active: console.endProgress()
      }
    }
  }
}

/// What a deployment would change, for people and for programs.
struct PlanSummary: Encodable {
  struct Definition: Encodable {
    var name: String
    var change: String
    var buckets: Int64
    var rows: Int64
    var rowsToRead: Int64
  }

  struct Table: Encodable {
    var name: String
    var isNew: Bool
  }

  var definitions: [Definition]
  var tables: [Table]

  init(_ plan: DeploymentPlan) {
    definitions = plan.definitions.map {
      Definition(
        name: $0.name, change: $0.change.rawValue, buckets: $0.buckets, rows: $0.rows,
        rowsToRead: $0.rowsToRead)
    }
    tables = plan.tables.map { Table(name: "\($0.schema).\($0.name)", isNew: $0.isNew) }
  }

  var text: String {
    let width = definitions.map(\.name.count).max() ?? 0
    var lines = definitions.map { definition in
      let name =
        definition.name + String(repeating: " ", count: width - definition.name.count)
      var line = "\(name)  \(definition.change)"
      switch definition.change {
      case "unchanged": line += ": \(definition.buckets) buckets, \(definition.rows) rows stay"
      case "removed": line += ": \(definition.buckets) buckets, \(definition.rows) rows go away"
      case "changed":
        line +=
          ": \(definition.buckets) buckets, \(definition.rows) rows are sent anew; "
          + "about \(definition.rowsToRead) rows to read"
      default: line += ": about \(definition.rowsToRead) rows to read"
      }
      return line
    }
    for table in tables where table.isNew {
      lines.append("\(table.name) gets capture triggers")
    }
    return lines.joined(separator: "\n")
  }
}
