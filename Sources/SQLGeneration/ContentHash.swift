import Foundation

/// A hash of what a part of the plan means, the same in every process and release.
struct ContentHash {
  private var state: UInt128 = Self.basis

  // FNV-1a with 128 bits.
  private static let basis: UInt128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D
  private static let prime: UInt128 = 0x0000_0000_0100_0000_0000_0000_0000_013B

  /// Adds a value by its JSON with sorted keys.
  mutating func add(_ value: some Encodable) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // A plan holds only strings, numbers, booleans and lists of them: it always has JSON.
    guard let data = try? encoder.encode([value]) else {
      preconditionFailure("a plan cannot be written as JSON")
    }
    for byte in data {
      state ^= UInt128(byte)
      state = state &* Self.prime
    }
  }

  /// 32 hexadecimal digits.
  var text: String {
    let digits = String(state, radix: 16)
    return String(repeating: "0", count: 32 - digits.count) + digits
  }
}
