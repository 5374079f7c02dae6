import Foundation
internal import SyncProtocol

/// Signs development tokens with a symmetric key.
package struct TokenSigner: Sendable {
  private let secret: JSONWebKeySet.SigningSecret

  package init(secret: JSONWebKeySet.SigningSecret) { self.secret = secret }

  /// A token of `claims`, a JSON object's text that is signed as it stands.
  ///
  /// - Throws: ``TokenError`` with code `algorithm` when the key's algorithm is not an HMAC.
  package func sign(claimsJSON: String) throws(TokenError) -> String {
    var header = JSONWriter()
    header.append(literal: "{\"alg\":")
    header.append(string: secret.algorithm.rawValue)
    if let identifier = secret.identifier {
      header.append(literal: ",\"kid\":")
      header.append(string: identifier)
    }
    header.append(literal: ",\"typ\":\"JWT\"}")
    let message = Base64URL.encode(header.bytes) + "." + Base64URL.encode(Array(claimsJSON.utf8))
    guard
      let signature = MessageDigest.hmac(
        Array(message.utf8), secret: secret.bytes, algorithm: secret.algorithm)
    else { throw TokenError(.algorithm, "Tokens are signed here with HMAC keys only.") }
    return message + "." + Base64URL.encode(signature)
  }
}
