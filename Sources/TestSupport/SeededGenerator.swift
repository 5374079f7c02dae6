internal import Foundation

/// Random numbers that a seed repeats (splitmix64). A test states `seed` in its expectations' comments, so
/// that a failure names it; `SLUICE_TEST_SEED` sets it.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  package let seed: UInt64
  private var state: UInt64

  package init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// Seeds from `SLUICE_TEST_SEED`, or at random.
  package init() {
    let given = ProcessInfo.processInfo.environment["SLUICE_TEST_SEED"].flatMap { UInt64($0) }
    self.init(seed: given ?? UInt64.random(in: 0...UInt64.max))
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
