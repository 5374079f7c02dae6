import Foundation

/// HS256 tokens made here, independent of the project's own signer.
struct SignedToken {
  /// Signs any payload text as it is, so that also payloads no signer would write can be tried.
  static func make(payload: String, key: [UInt8], keyID: String = "test") -> String {
    let header = #"{"alg":"HS256","typ":"JWT","kid":"\#(keyID)"}"#
    let signed = encode(Array(header.utf8)) + "." + encode(Array(payload.utf8))
    return signed + "." + encode(SHA256.authenticate(Array(signed.utf8), key: key))
  }

  static func make(
    user: String, claims: [String: Any] = [:], lifetime: Double = 3600, key: [UInt8]
  ) throws -> String {
    var payload: [String: Any] = claims
    payload["sub"] = user
    payload["aud"] = "test"
    payload["iat"] = Int(Date.now.timeIntervalSince1970 + min(lifetime, 0)) - 60
    payload["exp"] = Int(Date.now.timeIntervalSince1970 + lifetime)
    let text = try JSONSerialization.data(withJSONObject: payload)
    return make(payload: String(decoding: text, as: UTF8.self), key: key)
  }

  static func encode(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
      .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
  }
}

/// FIPS 180-4, with RFC 2104 on top.
enum SHA256 {
  static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    var block = key.count > 64 ? hash(key) : key
    block += [UInt8](repeating: 0, count: 64 - block.count)
    return hash(block.map { $0 ^ 0x5c } + hash(block.map { $0 ^ 0x36 } + message))
  }

  static func hash(_ message: [UInt8]) -> [UInt8] {
    var state: [UInt32] = [
      0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a,
      0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    var padded = message + [0x80]
    while padded.count % 64 != 56 { padded.append(0) }
    let bits = UInt64(message.count) * 8
    for shift in stride(from: 56, through: 0, by: -8) {
      padded.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
    }
    for start in stride(from: 0, to: padded.count, by: 64) {
      var words = (0..<16).map { index in
        (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(padded[start + index * 4 + $1]) }
      }
      for index in 16..<64 {
        let (a, b) = (words[index - 15], words[index - 2])
        let s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)
        let s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10)
        words.append(words[index - 16] &+ s0 &+ words[index - 7] &+ s1)
      }
      var v = state
      for index in 0..<64 {
        let s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)
        let choice = (v[4] & v[5]) ^ (~v[4] & v[6])
        let t1 = v[7] &+ s1 &+ choice &+ rounds[index] &+ words[index]
        let s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)
        let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])
        v = [t1 &+ s0 &+ majority, v[0], v[1], v[2], v[3] &+ t1, v[4], v[5], v[6]]
      }
      for index in 0..<8 { state[index] &+= v[index] }
    }
    return state.flatMap { word in
      (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * $0)) }
    }
  }

  private static func rotate(_ x: UInt32, _ n: UInt32) -> UInt32 { x >> n | x << (32 - n) }

  /// The first 32 bits of the fractions of the cube roots of the first 64 primes.
  private static let rounds: [UInt32] = {
    var primes: [Int] = []
    var candidate = 2
    while primes.count < 64 {
      if primes.allSatisfy({ candidate % $0 != 0 }) { primes.append(candidate) }
      candidate += 1
    }
    return primes.map { prime in
      // The greatest r with r³ <= prime · 2^96 is the cube root times 2^32.
      let root = cbrt(Double(prime))
      let whole = UInt32(root)
      var low: UInt64 = 0
      var high: UInt64 = 1 << 32
      while high - low > 1 {
        let middle = (low + high) / 2
        if cubeIsAtMost(UInt64(whole) << 32 + middle, prime) { low = middle } else { high = middle }
      }
      return UInt32(low)
    }
  }()

  private static func cubeIsAtMost(_ root: UInt64, _ prime: Int) -> Bool {
    // root < 2^35; its cube has up to 105 bits.
    let square = UInt128(root) * UInt128(root)
    return square * UInt128(root) <= UInt128(prime) << 96
  }
}
