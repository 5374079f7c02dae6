import Foundation
import HTTPTransport
import ServiceRuntime
import SyncService
import TokenAuth

/// The configured keys, as what verifies and what signs.
enum TokenKeys {
  static func verifier(
    _ auth: ServiceConfiguration.Auth, transport: some HTTPTransport, observer: any Observer
  ) throws -> TokenVerifier {
    @Sendable func report(_ result: Result<Int, TokenError>, of source: String) {
      switch result {
      case .success(let count):
        observer.observe(.info("keys.read", ["source": .string(source), "keys": .int(count)]))
      case .failure(let error):
        observer.observe(.error("keys.not_read", ["source": .string(source)], error: error))
      }
    }
    var sources: [any KeySource] = []
    if let json = auth.keySetJSON {
      sources.append(FixedKeys(try JSONWebKeySet(json: Array(json.utf8), origin: .configuration)))
    }
    if let file = auth.keySetFile {
      sources.append(try FileKeys(path: file) { report($0, of: file) })
    }
    if let text = auth.keySetURL {
      guard let url = URL(string: text) else {
        throw CommandFailure(.wrongUsage, "auth.jwks_url is not a URL")
      }
      // What else the URL holds may be secret.
      let name = (url.host() ?? "") + url.path
      sources.append(
        RemoteKeys(url: url, report: { report($0, of: name) }) { try await fetch($0, transport) })
    }
    guard !sources.isEmpty else {
      throw CommandFailure(
        .wrongUsage, "no keys are configured: nobody could connect",
        hint: "Give auth.keys, auth.jwks_file or auth.jwks_url in the configuration.")
    }
    guard !auth.audience.isEmpty else {
      throw CommandFailure(
        .wrongUsage, "auth.audience is empty: no token could be meant for this gateway")
    }
    var policy = TokenVerifier.Policy(audience: auth.audience)
    policy.leeway = seconds(auth.leeway)
    policy.maximumLifetime = seconds(auth.maximumLifetime)
    return TokenVerifier(sources: sources, policy: policy)
  }

  /// Signs with the first symmetric key.
  static func sign(_ claimsJSON: String, with auth: ServiceConfiguration.Auth) throws -> String {
    var sets: [JSONWebKeySet] = []
    if let json = auth.keySetJSON {
      sets.append(try JSONWebKeySet(json: Array(json.utf8), origin: .configuration))
    }
    if let file = auth.keySetFile { sets.append(try JSONWebKeySet(file: file)) }
    guard let secret = sets.lazy.compactMap(\.signingSecret).first else {
      throw CommandFailure(
        .failed, "there is no symmetric key to sign with",
        hint: "Add one to auth.keys: {kty: oct, alg: HS256, k: …}.")
    }
    return try TokenSigner(secret: secret).sign(claimsJSON: claimsJSON)
  }

  private static func fetch(_ url: URL, _ transport: some HTTPTransport) async throws -> [UInt8] {
    let response = try await transport.send(
      TransportRequest(
        url: url.absoluteString, headers: [("Accept", "application/json")],
        timeout: fetchTimeout))
    guard response.status == 200 else {
      throw CommandFailure(.unavailable, "the key set was answered with \(response.status)")
    }
    return try await response.body.collect(upTo: 1 << 20)
  }

  /// Tokens wait so long for the keys to check them with.
  private static let fetchTimeout = Duration.seconds(3)

  private static func seconds(_ duration: Duration) -> TimeInterval {
    TimeInterval(duration.components.seconds)
  }
}
