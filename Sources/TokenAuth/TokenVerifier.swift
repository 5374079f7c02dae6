package import Foundation

/// A token whose signature and times were checked.
package struct VerifiedToken: Sendable, Equatable {
  /// `sub` as text; nil when it is JSON null.
  package let subject: String?
  /// The payload exactly as it was signed: strict JSON, an object, without U+0000 and lone surrogates.
  package let claimsJSON: String
  /// When the token stops being valid, without the verifier's leeway.
  package let expiresAt: Date
}

/// Is this token ours, current, and whose (RFC 7519).
package struct TokenVerifier: Sendable {
  /// What is accepted; the defaults are those that PowerSync's clients expect.
  package struct Policy: Sendable {
    /// The audiences of which a token must name one.
    package var audience: [String]
    /// How far clocks may differ, in seconds.
    package var leeway: TimeInterval = 60
    /// The longest time from `iat` to `exp`, in seconds.
    package var maximumLifetime: TimeInterval = 86_400
    /// The longest token, in bytes.
    package var maximumSize = 16_384

    package init(audience: [String]) { self.audience = audience }
  }

  private let sources: [any KeySource]
  private let policy: Policy

  package init(sources: [any KeySource], policy: Policy) {
    self.sources = sources
    self.policy = policy
  }

  /// Checks a compact JWS and its claims.
  package func verify(_ token: String, now: Date) async throws(TokenError) -> VerifiedToken {
    guard token.utf8.count <= policy.maximumSize else {
      throw TokenError(.tooLarge, "The token is longer than \(policy.maximumSize) bytes.")
    }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64URL.decode(parts[0]),
      let payload = Base64URL.decode(parts[1]), let signature = Base64URL.decode(parts[2]),
      StrictJSON.isAcceptable(header), let fields = StrictJSON.object(header)
    else { throw TokenError(.malformed, "The token is not a signed JSON web token.") }
    let message = Array("\(parts[0]).\(parts[1])".utf8)
    try await checkSignature(signature, of: message, header: fields, now: now)
    return try checkClaims(payload, now: now)
  }

  private func checkSignature(
    _ signature: [UInt8], of message: [UInt8], header: [String: Any], now: Date
  ) async throws(TokenError) {
    guard let name = header["alg"] as? String, let algorithm = SignatureAlgorithm(rawValue: name)
    else {
      throw TokenError(.algorithm, "The token's algorithm is not one of those accepted.")
    }
    guard header["crit"] == nil else {
      throw TokenError(.malformed, "The token demands an extension that is not known here.")
    }
    let identifier = header["kid"] as? String
    if header["kid"] != nil, identifier == nil {
      throw TokenError(.malformed, "The token's key name is not text.")
    }
    var failure: TokenError?
    var outage: TokenError?
    for source in sources {
      do throws(TokenError) {
        // A token that names a key is checked with that key alone; one that names none, with the nameless keys.
        let candidates = try await source.keys(identifier: identifier, now: now)
          .filter { $0.identifier == identifier }
        guard !candidates.isEmpty else { continue }
        let fitting = candidates.filter { $0.accepts(algorithm) }
        // The sources after this one, which may be far away, need not be asked.
        if fitting.contains(where: { $0.isValid(signature, of: message, algorithm: algorithm) }) {
          return
        }
        failure =
          fitting.isEmpty
          ? TokenError(.algorithm, "The token's algorithm does not fit its key.")
          : TokenError(.signature, "The token's signature is wrong.")
      } catch {
        outage = error
      }
    }
    throw failure ?? outage
      ?? TokenError(.unknownKey, "No key is known that could have signed the token.")
  }

  private func checkClaims(_ payload: [UInt8], now: Date) throws(TokenError) -> VerifiedToken {
    guard StrictJSON.isAcceptable(payload), let claims = StrictJSON.object(payload) else {
      throw TokenError(.claims, "The token's claims are not a JSON object that can be stored.")
    }
    if let parameters = claims["parameters"], !(parameters is [String: Any]) {
      throw TokenError(.claims, "The claim \"parameters\" is not an object.")
    }
    let subject = try Self.subject(claims)
    let issued = try Self.time("iat", in: claims)
    let expires = try Self.time("exp", in: claims)
    let clock = now.timeIntervalSince1970
    guard expires + policy.leeway > clock else {
      throw TokenError(.expired, "The token has expired.")
    }
    let begins = claims["nbf"] == nil ? issued : max(issued, try Self.time("nbf", in: claims))
    guard begins - policy.leeway <= clock else {
      throw TokenError(.notYetValid, "The token is not valid yet: check the issuer's clock.")
    }
    guard expires - issued <= policy.maximumLifetime else {
      throw TokenError(
        .lifetime,
        "The token lives longer than \(Int(policy.maximumLifetime)) seconds from iat to exp.")
    }
    let audience =
      (claims["aud"] as? [Any])?.compactMap { $0 as? String }
      ?? (claims["aud"] as? String).map { [$0] } ?? []
    guard audience.contains(where: policy.audience.contains) else {
      throw TokenError(.audience, "The token is not meant for this service: see its aud.")
    }
    return VerifiedToken(
      subject: subject, claimsJSON: String(decoding: payload, as: UTF8.self),
      expiresAt: Date(timeIntervalSince1970: expires))
  }

  private static func subject(_ claims: [String: Any]) throws(TokenError) -> String? {
    switch claims["sub"] {
    case let text as String: return text
    case is NSNull: return nil
    case let number as NSNumber:
      return isBoolean(number) ? (number.boolValue ? "true" : "false") : number.stringValue
    default: throw TokenError(.claims, "The claim \"sub\" is missing or not a scalar.")
    }
  }

  /// JSONSerialization gives booleans and numbers as the same class; only the stored type tells them apart.
  private static func isBoolean(_ number: NSNumber) -> Bool {
    String(cString: number.objCType) == "c"
  }

  private static func time(_ name: String, in claims: [String: Any]) throws(TokenError)
    -> TimeInterval
  {
    guard let number = claims[name] as? NSNumber, !isBoolean(number),
      number.doubleValue.magnitude < 1e12
    else { throw TokenError(.claims, "The claim \"\(name)\" is missing or not a number.") }
    return number.doubleValue
  }
}
