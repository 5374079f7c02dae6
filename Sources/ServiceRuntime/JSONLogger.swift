internal import Glibc
internal import Synchronization

/// Writes each observation of a level or above as one JSON object a line.
///
/// `{"time":"2026-11-30T02:05:11.123Z","level":"info","event":"tick.committed","changes":12}`; an
/// error's `description` is the member `error`.
package final class JSONLogger: Observer {
  private let descriptor: Int32
  private let level: Observation.Level
  private let clock: @Sendable () -> timespec
  private let lock = Mutex(())

  /// - Parameter descriptor: an open file, standard error by default, that stays the caller's.
  package convenience init(descriptor: Int32 = 2, level: Observation.Level = .info) {
    self.init(descriptor: descriptor, level: level) {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return time
    }
  }

  init(
    descriptor: Int32, level: Observation.Level, clock: @escaping @Sendable () -> timespec
  ) {
    self.descriptor = descriptor
    self.level = level
    self.clock = clock
  }

  package func observe(_ observation: Observation) {
    guard observation.level >= level else { return }
    var line: [UInt8] = Array("{\"time\":\"\(Self.text(clock()))\",\"level\":\"".utf8)
    line += observation.level.name.utf8
    line += "\",\"event\":".utf8
    Self.append(observation.event, to: &line)
    for (name, value) in observation.fields.sorted(by: { $0.key < $1.key }) {
      line.append(UInt8(ascii: ","))
      Self.append(name, to: &line)
      line.append(UInt8(ascii: ":"))
      switch value {
      case .string(let text): Self.append(text, to: &line)
      case .int(let number): line += String(number).utf8
      case .double(let number): line += (number.isFinite ? String(number) : "null").utf8
      case .bool(let flag): line += (flag ? "true" : "false").utf8
      }
    }
    if let error = observation.error {
      line += ",\"error\":".utf8
      Self.append(String(describing: error), to: &line)
    }
    line += "}\n".utf8
    // One line at a time; what a full or closed descriptor does not take is lost.
    lock.withLock { _ in
      var rest = line[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if errno != EINTR {
          break
        }
      }
    }
  }

  private static func text(_ time: timespec) -> String {
    var seconds = time.tv_sec
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let padded = { (number: Int, width: Int) in
      let digits = String(number)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    let date = [Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday)]
    let clock = [Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec)]
    return date.map { padded($0, 2) }.joined(separator: "-") + "T"
      + clock.map { padded($0, 2) }.joined(separator: ":")
      + "." + padded(time.tv_nsec / 1_000_000, 3) + "Z"
  }

  private static func append(_ text: String, to line: inout [UInt8]) {
    let digits = Array("0123456789abcdef".utf8)
    line.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        line += [UInt8(ascii: "\\"), byte]
      case 10: line += "\\n".utf8
      case ..<0x20:
        line += "\\u00".utf8
        line += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      default: line.append(byte)
      }
    }
    line.append(UInt8(ascii: "\""))
  }
}
