internal import COpenSSL

/// A key that can check signatures, made from a JSON web key.
///
/// What kind of key it is decides which algorithms may use it, never the token's header alone: an RSA key is no HMAC secret.
package final class VerificationKey: Sendable {
  private enum Material {
    case secret([UInt8])
    case rsa(OpaquePointer)
    case elliptic(OpaquePointer, SignatureAlgorithm)
    case edwards(OpaquePointer)
  }

  /// The key's name in its set.
  package let identifier: String?
  /// The only algorithm that may use the key, if its set says so.
  package let algorithm: SignatureAlgorithm?
  // An EVP_PKEY is only read after it was made, and reading it from several threads is allowed by OpenSSL.
  private nonisolated(unsafe) let material: Material

  private init(_ material: Material, identifier: String?, algorithm: SignatureAlgorithm?) {
    self.material = material
    self.identifier = identifier
    self.algorithm = algorithm
  }

  deinit {
    switch material {
    case .secret: break
    case .rsa(let key), .elliptic(let key, _), .edwards(let key): EVP_PKEY_free(key)
    }
  }

  package var isSymmetric: Bool {
    if case .secret = material { true } else { false }
  }

  static func secret(_ bytes: [UInt8], identifier: String?, algorithm: SignatureAlgorithm?)
    -> VerificationKey
  {
    VerificationKey(.secret(bytes), identifier: identifier, algorithm: algorithm)
  }

  static func rsa(
    modulus: [UInt8], exponent: [UInt8], identifier: String?, algorithm: SignatureAlgorithm?
  ) -> VerificationKey? {
    let encoded = DistinguishedEncoding.rsaPublicKey(modulus: modulus, exponent: exponent)
    return publicKey(encoded).map {
      VerificationKey(.rsa($0), identifier: identifier, algorithm: algorithm)
    }
  }

  static func elliptic(
    curve: String, x: [UInt8], y: [UInt8], identifier: String?, algorithm: SignatureAlgorithm?
  ) -> VerificationKey? {
    let named: (SignatureAlgorithm, [UInt8])
    switch curve {
    case "P-256": named = (.es256, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07])
    case "P-384": named = (.es384, [0x2B, 0x81, 0x04, 0x00, 0x22])
    case "P-521": named = (.es512, [0x2B, 0x81, 0x04, 0x00, 0x23])
    default: return nil
    }
    guard let length = named.0.coordinateLength, x.count == length, y.count == length else {
      return nil
    }
    let encoded = DistinguishedEncoding.ellipticPublicKey(curve: named.1, x: x, y: y)
    return publicKey(encoded).map {
      VerificationKey(.elliptic($0, named.0), identifier: identifier, algorithm: algorithm)
    }
  }

  static func edwards(curve: String, x: [UInt8], identifier: String?) -> VerificationKey? {
    let kind: Int32
    switch (curve, x.count) {
    case ("Ed25519", 32): kind = EVP_PKEY_ED25519
    case ("Ed448", 57): kind = EVP_PKEY_ED448
    default: return nil
    }
    guard let key = EVP_PKEY_new_raw_public_key(kind, nil, x, x.count) else {
      ERR_clear_error()
      return nil
    }
    return VerificationKey(.edwards(key), identifier: identifier, algorithm: .edDSA)
  }

  /// Reads a SubjectPublicKeyInfo; OpenSSL refuses a point that is not on its curve.
  private static func publicKey(_ encoded: [UInt8]) -> OpaquePointer? {
    encoded.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      guard let key = d2i_PUBKEY(nil, &cursor, buffer.count) else {
        ERR_clear_error()
        return nil
      }
      return key
    }
  }

  /// Whether `requested` is an algorithm that this key is meant for.
  package func accepts(_ requested: SignatureAlgorithm) -> Bool {
    if let algorithm, algorithm != requested { return false }
    switch (material, requested) {
    case (.secret, .hs256), (.secret, .hs384), (.secret, .hs512): return true
    case (.rsa, .rs256), (.rsa, .rs384), (.rsa, .rs512): return true
    case (.elliptic(_, let curve), _): return curve == requested
    case (.edwards, .edDSA): return true
    default: return false
    }
  }

  /// Whether `signature` is this key's signature of `message`. False for an algorithm that the key does not accept.
  package func isValid(
    _ signature: [UInt8], of message: [UInt8], algorithm requested: SignatureAlgorithm
  ) -> Bool {
    guard accepts(requested) else { return false }
    switch material {
    case .secret(let secret):
      guard let expected = MessageDigest.hmac(message, secret: secret, algorithm: requested),
        expected.count == signature.count
      else { return false }
      return CRYPTO_memcmp(expected, signature, expected.count) == 0
    case .rsa(let key):
      return verify(signature, of: message, key: key, digest: MessageDigest.named(requested))
    case .elliptic(let key, _):
      guard let length = requested.coordinateLength, signature.count == 2 * length else {
        return false
      }
      return verify(
        DistinguishedEncoding.ellipticSignature(signature), of: message, key: key,
        digest: MessageDigest.named(requested))
    case .edwards(let key):
      return verify(signature, of: message, key: key, digest: nil)
    }
  }

  private func verify(
    _ signature: [UInt8], of message: [UInt8], key: OpaquePointer, digest: OpaquePointer?
  ) -> Bool {
    guard let context = EVP_MD_CTX_new() else { return false }
    defer {
      EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    guard EVP_DigestVerifyInit(context, nil, digest, nil, key) == 1 else { return false }
    return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }
}

/// The SHA-2 digests and the HMAC over them.
enum MessageDigest {
  static func named(_ algorithm: SignatureAlgorithm) -> OpaquePointer? {
    switch algorithm.digestBits {
    case 256: EVP_sha256()
    case 384: EVP_sha384()
    case 512: EVP_sha512()
    default: nil
    }
  }

  static func hmac(_ message: [UInt8], secret: [UInt8], algorithm: SignatureAlgorithm) -> [UInt8]? {
    guard let digest = named(algorithm) else { return nil }
    var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    guard
      HMAC(digest, secret, Int32(secret.count), message, message.count, &output, &length) != nil
    else { return nil }
    return Array(output.prefix(Int(length)))
  }
}
