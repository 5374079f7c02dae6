/// Why a token was not accepted, or why a key set could not be used.
///
/// `description` never holds any part of the token or of a key.
package struct TokenError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The stable names of the errors; `rawValue` is what a client sees.
  package enum Code: String, Sendable {
    /// There is no token, or it is not three base64url parts.
    case malformed = "SLUICE_AUTH_MALFORMED"
    /// The token is longer than the verifier's limit.
    case tooLarge = "SLUICE_AUTH_TOO_LARGE"
    /// The header names an algorithm that is not accepted, or one that does not fit the key.
    case algorithm = "SLUICE_AUTH_ALGORITHM"
    /// No key of the configured sets can have signed the token.
    case unknownKey = "SLUICE_AUTH_UNKNOWN_KEY"
    /// The signature does not fit the token.
    case signature = "SLUICE_AUTH_SIGNATURE"
    /// A claim is missing or of the wrong type.
    case claims = "SLUICE_AUTH_CLAIMS"
    /// `exp` has passed.
    case expired = "SLUICE_AUTH_EXPIRED"
    /// `nbf` or `iat` lies in the future.
    case notYetValid = "SLUICE_AUTH_NOT_YET_VALID"
    /// The time from `iat` to `exp` is over the limit.
    case lifetime = "SLUICE_AUTH_LIFETIME"
    /// `aud` names none of the configured audiences.
    case audience = "SLUICE_AUTH_AUDIENCE"
    /// A key set cannot be read or fetched.
    case keySet = "SLUICE_AUTH_KEY_SET"
  }

  package let code: Code
  /// A sentence for a person.
  package let message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(code.rawValue): \(message)" }
}
