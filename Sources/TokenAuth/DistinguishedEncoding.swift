/// The few shapes of ASN.1 DER that turn a JSON web key and a JWS signature into what OpenSSL reads.
enum DistinguishedEncoding {
  static func integer(_ magnitude: some Collection<UInt8>) -> [UInt8] {
    var bytes = Array(magnitude.drop { $0 == 0 })
    if bytes.first.map({ $0 >= 0x80 }) ?? true { bytes.insert(0, at: 0) }
    return element(0x02, bytes)
  }

  static func sequence(_ parts: [UInt8]...) -> [UInt8] { element(0x30, parts.flatMap { $0 }) }

  static func bitString(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }

  static func objectIdentifier(_ content: [UInt8]) -> [UInt8] { element(0x06, content) }

  static let null: [UInt8] = [0x05, 0x00]

  private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    var length: [UInt8] = []
    if content.count < 0x80 {
      length = [UInt8(content.count)]
    } else {
      var rest = content.count
      while rest > 0 {
        length.insert(UInt8(rest & 0xFF), at: 0)
        rest >>= 8
      }
      length.insert(0x80 | UInt8(length.count), at: 0)
    }
    return [tag] + length + content
  }

  /// The encoded key of an RSA modulus and exponent (RFC 8017 appendix A.1.1).
  static func rsaPublicKey(modulus: [UInt8], exponent: [UInt8]) -> [UInt8] {
    let rsaEncryption = objectIdentifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01])
    return sequence(
      sequence(rsaEncryption, null), bitString(sequence(integer(modulus), integer(exponent))))
  }

  /// The encoded key of an uncompressed point on a named curve (RFC 5480 section 2).
  static func ellipticPublicKey(curve: [UInt8], x: [UInt8], y: [UInt8]) -> [UInt8] {
    let ecPublicKey = objectIdentifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01])
    return sequence(sequence(ecPublicKey, objectIdentifier(curve)), bitString([4] + x + y))
  }

  /// The encoded form of a JWS signature R ‖ S.
  static func ellipticSignature(_ concatenated: [UInt8]) -> [UInt8] {
    let half = concatenated.count / 2
    return sequence(integer(concatenated[..<half]), integer(concatenated[half...]))
  }
}
