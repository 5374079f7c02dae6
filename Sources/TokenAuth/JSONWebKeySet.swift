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
          "Key \(index + 1) of the set cannot be used: its kty, crv, alg or key data is wrong, "
            + "not supported, or too short (HMAC needs as many bytes as its hash has, RSA 2048 bits)."
        )
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
      // RFC 7518 section 3.2: no shorter than the hash, else it can be guessed from one token.
      let shortest = (algorithm?.digestBits ?? 256) / 8
      guard let secret = bytes("k"), secret.count >= shortest else { return nil }
      key = .secret(secret, identifier: identifier, algorithm: algorithm)
    case "RSA":
      guard let modulus = bytes("n"), let exponent = bytes("e"),
        modulus.drop(while: { $0 == 0 }).count >= 256
      else { return nil }
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
  /// Whether `json` is one value without U+0000, lone surrogates, invalid UTF-8 or deep nesting, and, if it is an object,
  /// without a member given twice: two readers could take different ones of them (RFC 7519 section 4).
  static func isAcceptable(_ json: [UInt8]) -> Bool {
    json.withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes, direction: .request)
      cursor.depthLimit = 32
      var names: Set<String> = []
      var isUnique = true
      do {
        cursor.skipWhitespace()
        if cursor.peek() == UInt8(ascii: "{") {
          try cursor.readObject { (name, cursor) throws(ProtocolError) in
            isUnique = names.insert(name).inserted && isUnique
            try cursor.skipValue()
          }
        } else {
          try cursor.skipValue()
        }
        try cursor.expectEnd()
        return isUnique
      } catch {
        return false
      }
    }
  }

  static func object(_ json: [UInt8]) -> [String: Any]? {
    (try? JSONSerialization.jsonObject(with: Data(json))) as? [String: Any]
  }
}
