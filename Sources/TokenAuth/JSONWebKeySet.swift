import Foundation
internal import SyncProtocol

/// A set of JSON web keys (RFC 7517 section 5).
package struct JSONWebKeySet: Sendable {
  /// Where a set comes from decides what is believed of it.
  package enum Origin: Sendable {
    /// Written by the administrator: every key must be usable.
    case configuration
    /// Fetched over the network: symmetric keys, keys that are not for signatures and kinds of keys that are not known are
    /// passed over, since anybody may read such a set.
    case remote
  }

  package let keys: [VerificationKey]
  /// The secret of the first symmetric key, for signing development tokens.
  package let signingSecret: SigningSecret?

  package struct SigningSecret: Sendable {
    package let bytes: [UInt8]
    package let identifier: String?
    package let algorithm: SignatureAlgorithm
  }

  /// Reads `{"keys": […]}`.
  ///
  /// - Throws: ``TokenError`` with code `keySet`, naming the number of the faulty key.
  package init(json: [UInt8], origin: Origin) throws(TokenError) {
    guard StrictJSON.isAcceptable(json),
      let root = StrictJSON.object(json), let members = root["keys"] as? [Any]
    else {
      throw TokenError(.keySet, "The key set is not a JSON object with an array \"keys\".")
    }
    var keys: [VerificationKey] = []
    var signingSecret: SigningSecret?
    for (index, member) in members.enumerated() {
      guard let fields = member as? [String: Any] else {
        throw TokenError(.keySet, "Key \(index + 1) of the set is not an object.")
      }
      if let use = fields["use"] as? String, use != "sig" { continue }
      if origin == .remote, fields["kty"] as? String == "oct" { continue }
      guard let key = Self.key(fields) else {
        if origin == .remote { continue }
        throw TokenError(
          .keySet,
          "Key \(index + 1) of the set cannot be used: its kty, crv, alg or key data is wrong "
            + "or not supported.")
      }
      keys.append(key)
      if key.isSymmetric, signingSecret == nil,
        let secret = (fields["k"] as? String).flatMap(Base64URL.decode)
      {
        signingSecret = SigningSecret(
          bytes: secret, identifier: key.identifier, algorithm: key.algorithm ?? .hs256)
      }
    }
    self.keys = keys
    self.signingSecret = signingSecret
  }

  private static func key(_ fields: [String: Any]) -> VerificationKey? {
    let identifier = fields["kid"] as? String
    var algorithm: SignatureAlgorithm?
    if let name = fields["alg"] as? String {
      guard let known = SignatureAlgorithm(rawValue: name) else { return nil }
      algorithm = known
    }
    func bytes(_ name: String) -> [UInt8]? {
      (fields[name] as? String).flatMap(Base64URL.decode).flatMap { $0.isEmpty ? nil : $0 }
    }
    let key: VerificationKey?
    switch fields["kty"] as? String {
    case "oct":
      key = bytes("k").map { .secret($0, identifier: identifier, algorithm: algorithm) }
    case "RSA":
      guard let modulus = bytes("n"), let exponent = bytes("e") else { return nil }
      key = .rsa(
        modulus: modulus, exponent: exponent, identifier: identifier, algorithm: algorithm)
    case "EC":
      guard let curve = fields["crv"] as? String, let x = bytes("x"), let y = bytes("y") else {
        return nil
      }
      key = .elliptic(curve: curve, x: x, y: y, identifier: identifier, algorithm: algorithm)
    case "OKP":
      guard let curve = fields["crv"] as? String, let x = bytes("x") else { return nil }
      key = .edwards(curve: curve, x: x, identifier: identifier)
    default:
      return nil
    }
    // A key whose own `alg` it cannot serve would refuse every token: better said when it is read.
    if let key, let algorithm, !key.accepts(algorithm) { return nil }
    return key
  }
}

/// JSON as tokens and key sets carry it: RFC 8259, bounded, and storable in PostgreSQL.
enum StrictJSON {
  /// Whether `json` is one value without U+0000, lone surrogates, invalid UTF-8 or deep nesting.
  static func isAcceptable(_ json: [UInt8]) -> Bool {
    json.withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes, direction: .request)
      cursor.depthLimit = 32
      do {
        cursor.skipWhitespace()
        try cursor.skipValue()
        try cursor.expectEnd()
        return true
      } catch {
        return false
      }
    }
  }

  static func object(_ json: [UInt8]) -> [String: Any]? {
    (try? JSONSerialization.jsonObject(with: Data(json))) as? [String: Any]
  }
}
