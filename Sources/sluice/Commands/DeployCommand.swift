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
      .flag(
        "--dry-run",
        "only say what would change, for how many buckets and rows, and what widens access"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let access = try DatabaseAccess(arguments)
    let path = try access.rulesPath(arguments)
    let catalog = try await access.catalog()
    let pipeline = try RulesPipeline.run(path: path, catalog: catalog)
    let rules = try pipeline.requireCompiled(console)
    let deployer = deployer(access)
    let plan = try await deployer.plan(rules)
    let summary = DeploymentSummary(
      plan, comparison: try await comparison(of: pipeline.plan, access, catalog))
    if arguments.wantsJSON {
      try console.print(json: summary)
    } else {
      console.print(summary.text)
    }
    guard !arguments.has("--dry-run") else { return .done }
    try await deploy(rules, source: pipeline.file.text, with: deployer, console)
    if !arguments.wantsJSON { console.print("in force") }
    return .done
  }

  /// The rules in force beside the new ones; nil when there are none, or none that fit the tables as they are.
  private static func comparison(
    of plan: SyncPlan?, _ access: DatabaseAccess, _ catalog: Catalog
  ) async throws -> PlanComparison? {
    let text = try await access.withConnection { try await RulesInForce.text($0) }
    guard let plan, let text else { return nil }
    return RulesPipeline.run(text: text, name: "the rules in force", catalog: catalog).plan
      .map { PlanComparison(from: $0, to: plan) }
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
