import Foundation

/// The terminal, or whatever stands in for it.
struct Console: Sendable {
  /// Whether standard error can show progress that overwrites itself.
  var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  func print(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
  }

  func error(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
  }

  /// Shows `text` in the place of what was shown before; only on a terminal.
  func progress(_ text: String) {
    guard isTerminal else { return }
    FileHandle.standardError.write(Data(("\r\u{1B}[K" + text).utf8))
  }

  func endProgress() {
    guard isTerminal else { return }
    FileHandle.standardError.write(Data("\r\u{1B}[K".utf8))
  }

  /// Prints an encodable value as indented JSON.
  func print(json value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    FileHandle.standardOutput.write(try encoder.encode(value) + Data("\n".utf8))
  }
}
