/// The text of a file with an index of its lines, to turn byte offsets into lines and columns.
package struct SourceFile: Sendable {
  /// A position as editors count it: both from 1, the column in Unicode scalars.
  package struct Location: Sendable, Hashable, Codable {
    package var line: Int
    package var column: Int
  }

  package let name: String
  package let text: String
  let bytes: [UInt8]
  private let lineStarts: [Int]

  package init(name: String, text: String) {
    self.name = name
    self.text = text
    bytes = Array(text.utf8)
    var starts = [0]
    for (offset, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") {
      starts.append(offset + 1)
    }
    lineStarts = starts
  }

  /// The line and column of a byte offset; offsets outside the text are moved to its nearer end.
  package func location(of offset: Int) -> Location {
    let offset = min(max(offset, 0), bytes.count)
    let line = lineIndex(of: offset)
    let column = bytes[lineStarts[line]..<offset].count { $0 & 0xC0 != 0x80 }
    return Location(line: line + 1, column: column + 1)
  }

  /// The text of a line counted from 1, without its line break.
  package func line(_ number: Int) -> String {
    guard lineStarts.indices.contains(number - 1) else { return "" }
    let start = lineStarts[number - 1]
    let limit = number < lineStarts.count ? lineStarts[number] - 1 : bytes.count
    var end = max(start, limit)
    if end > start, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  /// The text a span covers.
  package func text(of span: SourceSpan) -> String {
    let start = min(max(span.start, 0), bytes.count)
    let end = min(max(span.end, start), bytes.count)
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  private func lineIndex(of offset: Int) -> Int {
    var low = 0
    var high = lineStarts.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    return low
  }
}
