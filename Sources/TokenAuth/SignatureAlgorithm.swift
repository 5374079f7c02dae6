/// The JSON Web Algorithms that are accepted (RFC 7518 section 3, RFC 8037).
///
/// `none` and the RSA-PSS family are not among them.
package enum SignatureAlgorithm: String, Sendable, CaseIterable {
  case hs256 = "HS256"
  case hs384 = "HS384"
  case hs512 = "HS512"
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case es256 = "ES256"
  case es384 = "ES384"
  case es512 = "ES512"
  case edDSA = "EdDSA"

  /// The bits of the SHA-2 digest; nil for EdDSA, which has its own.
  var digestBits: Int? {
    switch self {
    case .hs256, .rs256, .es256: 256
    case .hs384, .rs384, .es384: 384
    case .hs512, .rs512, .es512: 512
    case .edDSA: nil
    }
  }

  /// For ECDSA: the bytes of one coordinate on the algorithm's curve, half of a signature's length.
  var coordinateLength: Int? {
    switch self {
    case .es256: 32
    case .es384: 48
    case .es512: 66
    default: nil
    }
  }
}
