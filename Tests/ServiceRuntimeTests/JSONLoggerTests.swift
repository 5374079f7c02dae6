import Glibc
import Testing

@testable import ServiceRuntime

@Suite struct JSONLoggerTests {
  private struct Broken: Error, CustomStringConvertible {
    var description: String { "broke \"here\"" }
  }

  /// What a logger writes when told `observations`.
  private func lines(
    level: Observation.Level = .debug, _ observations: [Observation]
  ) -> String {
    var ends: [Int32] = [-1, -1]
    pipe(&ends)
    let logger = JSONLogger(descriptor: ends[1], level: level) {
      timespec(tv_sec: 1_796_004_311, tv_nsec: 7_999_999)
    }
    for observation in observations { logger.observe(observation) }
    close(ends[1])
    defer { close(ends[0]) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(ends[0], &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  // `date -u -d @1796004311` says 2026-11-30 02:05:11.
  @Test func `a line is one object with sorted fields and the error's description`() {
    let observation = Observation.warning(
      "tick.late", ["b": 1, "a": "x\"\\\n\u{1}é", "c": true, "d": 0.5, "e": .double(.nan)],
      error: Broken())
    #expect(
      lines([observation])
        == #"{"time":"2026-11-30T02:05:11.007Z","level":"warning","event":"tick.late","#
        + #""a":"x\"\\\n\u0001é","b":1,"c":true,"d":0.5,"e":null,"error":"broke \"here\""}"# + "\n")
  }

  @Test func `what is below the level is not written`() {
    let observations: [Observation] = [.debug("a"), .info("b"), .error("c")]
    let written = lines(level: .warning, observations)
    #expect(written.contains("\"c\"") && !written.contains("\"b\""))
  }
}
