import BucketStorage
import Foundation
import Postgres
import SQLGeneration
import SyncProtocol
import SyncRules
import SyncService

/// Shows what rules mean: the SQL that they become, and what a user would hold.
enum ExplainCommand: Subcommand {
  static let description = CommandDescription(
    name: "explain", summary: "Show the SQL that rules become, and what somebody may hold by them.",
    arguments: [
      .init(
        name: "RULES", help: "the rules file; the configured one if left out", isRequired: false)
    ],
    options: [
      .config, .database, .format,
      .value("--claims", "JSON", "list the buckets that a token with these claims gets"),
      .value("--token", "T", "the same, with the claims of this token, which is not verified"),
      .list(
        "--subscribe", "STREAM",
        "with a subscription to this stream, NAME or 'NAME?key=value&key=value'; may be given again"
      ),
      .flag("--no-defaults", "without the streams that clients have without asking"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let request = try request(arguments)
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

  /// What a client with the claims would ask; nil when none were given.
  private static func request(_ arguments: Arguments) throws -> ViewRequest? {
    guard let claims = try claims(arguments) else {
      guard arguments.all("--subscribe").isEmpty, !arguments.has("--no-defaults") else {
        throw UsageError(message: "--subscribe and --no-defaults go with --claims or --token")
      }
      return nil
    }
    return ViewRequest(
      claimsJSON: claims,
      subscriptions: try arguments.all("--subscribe").map { try subscription($0) },
      includeDefaults: !arguments.has("--no-defaults"))
  }

  private static func subscription(_ text: String) throws -> StreamSubscription {
    do {
      return try StreamSubscription(parsing: text)
    } catch {
      throw UsageError(message: "--subscribe: \(error.message) \(error.hint ?? "")")
    }
  }

  private static func claims(_ arguments: Arguments) throws -> String? {
    if let claims = arguments["--claims"] {
      guard (try? JSONSerialization.jsonObject(with: Data(claims.utf8))) is [String: Any] else {
        throw UsageError(message: "--claims must be a JSON object")
      }
      return claims
    }
    guard let token = arguments["--token"] else { return nil }
    let parts = token.split(separator: ".")
    guard parts.count == 3, let payload = decoded(String(parts[1])) else {
      throw UsageError(message: "--token is no JSON web token")
    }
    return payload
  }

  private static func decoded(_ part: String) -> String? {
    var base64 = part.replacing("-", with: "+").replacing("_", with: "/")
    base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
    return Data(base64Encoded: base64).flatMap { String(data: $0, encoding: .utf8) }
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
