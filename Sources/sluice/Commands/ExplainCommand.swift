import BucketStorage
import Postgres
import SQLGeneration
import SyncRules
import SyncService

/// Shows what rules mean: the SQL that they become, and what a user would hold.
enum ExplainCommand: Subcommand {
  static let description = CommandDescription(
    name: "explain",
    summary: "Show the SQL that rules become, and the buckets of a user who is named.",
    arguments: [
      .init(
        name: "RULES", help: "the rules file; the configured one if left out", isRequired: false)
    ],
    options: [.config, .database, .format] + RequestArguments.options)

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let request = try RequestArguments.read(arguments)
    let access = try DatabaseAccess(arguments)
    let catalog = try await access.catalog()
    let pipeline = try RulesPipeline.run(
      path: try access.rulesPath(arguments), catalog: catalog)
    let rules = try pipeline.requireCompiled(console)
    var held: StreamView?
    if let request { held = try await Self.held(by: request, access) }
    let explanation = Explanation(rules, held: held)
    if arguments.wantsJSON {
      try console.print(json: explanation)
    } else {
      console.print(explanation.text)
    }
    return .done
  }

  /// By the rules in force in the database, which hold the rows that parameters come from.
  private static func held(
    by request: ViewRequest, _ access: DatabaseAccess
  ) async throws -> StreamView {
    let pool = access.pool(size: 1)
    let view = try await StorageSource(store: BucketStore(pool: pool)).view(of: request)
    await pool.close()
    return view
  }
}
