import Foundation
import SyncService
import TokenAuth

/// Prints a token for trying things out.
enum TokenCommand: Subcommand {
  static let description = CommandDescription(
    name: "token", summary: "Print a token signed with the first symmetric key.",
    options: [
      .config, .value("--user", "U", "the user, which becomes the claim sub"),
      .value("--claims", "JSON", "an object with more claims"),
      .value("--ttl", "TIME", "how long it is good for, such as 1h (default)"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let configuration = try ConfigurationAccess.read(arguments)
    guard let user = arguments["--user"] else { throw UsageError(message: "--user is missing") }
    guard let ttl = ConfigurationReader.duration(arguments["--ttl"] ?? "1h") else {
      throw UsageError(message: "--ttl must be a time such as 30s, 5m or 1h")
    }
    let now = Int(Date().timeIntervalSince1970)
    var claims: [String: Any] = [:]
    if let text = arguments["--claims"] {
      guard let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)),
        let more = object as? [String: Any]
      else { throw UsageError(message: "--claims must be a JSON object") }
      claims = more
    }
    let own: [String: Any] = [
      "sub": user, "iat": now, "exp": now + Int(ttl.components.seconds),
    ]
    claims.merge(own) { more, _ in more }
    if claims["aud"] == nil, !configuration.auth.audience.isEmpty {
      claims["aud"] = configuration.auth.audience
    }
    let payload = try JSONSerialization.data(
      withJSONObject: claims, options: [.sortedKeys, .withoutEscapingSlashes])
    console.print(
      try TokenKeys.sign(String(decoding: payload, as: UTF8.self), with: configuration.auth))
    return .done
  }
}
