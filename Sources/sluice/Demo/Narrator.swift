import Foundation

/// Tells a story: steps, and lines below them.
struct Narrator: Sendable {
  let console: Console
  private let isBold = isatty(STDOUT_FILENO) == 1

  init(_ console: Console) {
    self.console = console
  }

  func step(_ title: String) {
    console.print(isBold ? "\n\u{1B}[1m\(title)\u{1B}[0m" : "\n\(title)")
  }

  func tell(_ line: String) {
    console.print("  " + line)
  }

  /// Names on the left, in a column.
  func tell(_ name: String, _ text: String, width: Int = 10) {
    tell(name + String(repeating: " ", count: max(0, width - name.count)) + " " + text)
  }
}

extension String {
  /// The text with blanks before it.
  func leftPadded(_ width: Int) -> String {
    String(repeating: " ", count: max(0, width - count)) + self
  }
}
