import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Standard output and standard error.
enum Terminal {
  /// Whether a person sees standard error.
  static var isInteractive: Bool { isatty(STDERR_FILENO) == 1 }

  static func write(_ text: String) { write(text, to: STDOUT_FILENO) }

  static func writeLine(_ text: String) { write(text + "\n") }

  static func writeError(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

  /// Writes over the current line of standard error.
  static func writeOver(_ text: String) { write("\r\u{1B}[K" + text, to: STDERR_FILENO) }

  /// Writes all of it; a reader that has gone ends the process, as it does for other tools.
  private static func write(_ text: String, to descriptor: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
      if written < 0 {
        if errno == EINTR { continue }
        return
      }
      rest = rest.dropFirst(written)
    }
  }

  private static func systemWrite(
    _ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int
  ) -> Int {
    #if canImport(Glibc)
      Glibc.write(descriptor, bytes, count)
    #else
      Darwin.write(descriptor, bytes, count)
    #endif
  }

  /// A bar of 30 cells with figures.
  static func progress(_ done: Int64, of whole: Int64) -> String {
    let cells = whole > 0 ? Int(min(30, done * 30 / whole)) : 30
    let bar = String(repeating: "█", count: cells) + String(repeating: "░", count: 30 - cells)
    return "\(bar) \(done) of \(whole) rows"
  }
}
