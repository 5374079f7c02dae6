import BucketStorage
import Foundation
import Postgres
import SQLGeneration
import SyncRules

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
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let claims = try claims(arguments)
    let access = try DatabaseAccess(arguments)
    let catalog = try await access.catalog()
    let pipeline = try RulesPipeline.run(
      path: try access.rulesPath(arguments), catalog: catalog)
    let rules = try pipeline.requireCompiled(console)
    let buckets = try await claims.asyncMap { try await held(by: $0, access) }
    let explanation = Explanation(rules, buckets: buckets)
    if arguments.wantsJSON {
      try console.print(json: explanation)
    } else {
      console.print(explanation.text)
    }
    return .done
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
    by claims: String, _ access: DatabaseAccess
  ) async throws -> [Explanation.Bucket] {
    let pool = access.pool(size: 1)
    let store = BucketStore(pool: pool)
    let state = try await store.checkpoint(for: RequestContext(claimsJSON: claims))
    await pool.close()
    return state.buckets.map {
      Explanation.Bucket(name: $0.name, priority: $0.priority, count: $0.count)
    }
  }
}

extension Optional {
  fileprivate func asyncMap<Result>(
    _ transform: (Wrapped) async throws -> Result
  ) async throws -> Result? {
    guard let self else { return nil }
    return try await transform(self)
  }
}
