import Foundation
import SyncProtocol
import SyncService

/// Options that say on whose behalf a command asks.
enum RequestArguments {
  static let options: [CommandDescription.Option] = [
    .value("--user", "U", "ask for this user: the claim sub"),
    .value("--claims", "JSON", "ask for a token with these claims, besides sub if --user is given"),
    .value("--token", "T", "ask for the claims of this token, which is not verified"),
    .list(
      "--subscribe", "STREAM",
      "with a subscription to this stream, NAME or 'NAME?key=value&key=value'; may be given again"
    ),
    .flag("--no-defaults", "without the streams that clients have without asking"),
  ]

  /// What a client with the claims would ask; nil when none were given.
  static func read(_ arguments: Arguments) throws -> ViewRequest? {
    guard let claims = try claims(arguments) else {
      guard arguments.all("--subscribe").isEmpty, !arguments.has("--no-defaults") else {
        throw UsageError(
          message: "--subscribe and --no-defaults go with --user, --claims or --token")
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
    if let token = arguments["--token"] {
      guard arguments["--user"] == nil, arguments["--claims"] == nil else {
        throw UsageError(message: "--token brings its own claims: leave --user and --claims out")
      }
      let parts = token.split(separator: ".")
      guard parts.count == 3, let payload = decoded(String(parts[1])) else {
        throw UsageError(message: "--token is no JSON web token")
      }
      return payload
    }
    guard arguments["--user"] != nil || arguments["--claims"] != nil else { return nil }
    let text = arguments["--claims"] ?? "{}"
    guard var claims = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
    else { throw UsageError(message: "--claims must be a JSON object") }
    guard let user = arguments["--user"] else { return text }
    claims["sub"] = user
    let data = try JSONSerialization.data(
      withJSONObject: claims, options: [.sortedKeys, .withoutEscapingSlashes])
    return String(decoding: data, as: UTF8.self)
  }

  private static func decoded(_ part: String) -> String? {
    var base64 = part.replacing("-", with: "+").replacing("_", with: "/")
    base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
    return Data(base64Encoded: base64).flatMap { String(data: $0, encoding: .utf8) }
  }
}
