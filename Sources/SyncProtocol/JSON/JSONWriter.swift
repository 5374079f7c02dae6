/// Bytes of JSON being written.
///
/// Line separators of any kind (U+000A, U+000D, U+0085, U+2028, U+2029) are always escaped, so that what is written is
/// one line to every reader.
package struct JSONWriter {
  package private(set) var bytes: [UInt8] = []

  package init(reserving capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  /// Gives the bytes away and starts again with none.
  package mutating func take() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  /// Forgets what was written, keeping the memory.
  package mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  @inline(__always)
  package mutating func append(_ byte: UInt8) { bytes.append(byte) }

  /// Appends text that is JSON already, such as `{"rows":`.
  package mutating func append(literal text: StaticString) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  package mutating func append(_ value: Int64) {
    var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
    withUnsafeMutableBytes(of: &digits) { buffer in
      var index = buffer.count
      var rest = value.magnitude
      repeat {
        index -= 1
        buffer[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if value < 0 {
        index -= 1
        buffer[index] = UInt8(ascii: "-")
      }
      bytes.append(contentsOf: buffer[index...])
    }
  }

  package mutating func append(_ value: Bool) {
    if value { append(literal: "true") } else { append(literal: "false") }
  }

  /// Appends a string value with its quotes.
  package mutating func append(string text: String) {
    var copy = text
    copy.withUTF8 { append(string: UnsafeRawBufferPointer($0)) }
  }

  /// Appends UTF-8 bytes as a string value with its quotes.
  package mutating func append(string text: UnsafeRawBufferPointer) {
    bytes.append(UInt8(ascii: "\""))
    var start = 0
    var index = 0
    while true {
      index = plainPrefix(of: text, from: index, stopAtQuotes: true)
      guard index < text.count else { break }
      let separator = lineSeparatorLength(in: text, at: index)
      let byte = text[index]
      if separator == 0, byte >= 0x20, byte != 0x22, byte != 0x5C {
        index += 1
        continue
      }
      bytes.append(contentsOf: text[start..<index])
      if separator > 0 {
        appendEscapedSeparator(length: separator, last: text[index + separator - 1])
        index += separator
      } else {
        appendEscape(of: byte)
        index += 1
      }
      start = index
    }
    bytes.append(contentsOf: text[start...])
    bytes.append(UInt8(ascii: "\""))
  }

  /// Appends text that is valid JSON already, keeping it on one line.
  package mutating func append(json text: UnsafeRawBufferPointer) {
    var start = 0
    var index = 0
    while true {
      index = plainPrefix(of: text, from: index, stopAtQuotes: false)
      guard index < text.count else { break }
      let separator = lineSeparatorLength(in: text, at: index)
      if separator == 0, text[index] >= 0x20 {
        index += 1
        continue
      }
      bytes.append(contentsOf: text[start..<index])
      if separator > 0 {
        appendEscapedSeparator(length: separator, last: text[index + separator - 1])
        index += separator
      } else {
        // Outside strings a control character can only be white space between tokens.
        bytes.append(0x20)
        index += 1
      }
      start = index
    }
    bytes.append(contentsOf: text[start...])
  }

  package mutating func append(json text: String) {
    var copy = text
    copy.withUTF8 { append(json: UnsafeRawBufferPointer($0)) }
  }

  /// Appends bytes as they are.
  package mutating func append(raw text: UnsafeRawBufferPointer) { bytes.append(contentsOf: text) }

  /// Appends 16 hexadecimal digits with their quotes.
  package mutating func append(hexadecimal value: UInt64) {
    bytes.append(UInt8(ascii: "\""))
    for shift in stride(from: 60, through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: value >> UInt64(shift)) & 0xF
      bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
    }
    bytes.append(UInt8(ascii: "\""))
  }

  // MARK: Pieces

  /// The first index at or after `index` that may need care: a control, the first byte of a line separator, or (if asked) a
  /// quote or backslash.
  @inline(__always)
  private func plainPrefix(
    of text: UnsafeRawBufferPointer, from index: Int, stopAtQuotes: Bool
  ) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    var index = index
    while text.count - index >= 8 {
      let word = UInt64(littleEndian: text.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      var found = (word &- ones &* 0x20) | word
      if stopAtQuotes {
        let quote = word ^ (ones &* 0x22)
        let slash = word ^ (ones &* 0x5C)
        found |= (quote &- ones) | (slash &- ones)
      }
      found &= highs
      if found != 0 { break }
      index += 8
    }
    while index < text.count {
      let byte = text[index]
      if byte < 0x20 || byte == 0xC2 || byte == 0xE2 { break }
      if stopAtQuotes, byte == 0x22 || byte == 0x5C { break }
      index += 1
    }
    return index
  }

  /// 2 for U+0085, 3 for U+2028 and U+2029, 0 for anything else.
  @inline(__always)
  private func lineSeparatorLength(in text: UnsafeRawBufferPointer, at index: Int) -> Int {
    switch text[index] {
    case 0xC2 where index + 1 < text.count && text[index + 1] == 0x85: 2
    case 0xE2
    where index + 2 < text.count && text[index + 1] == 0x80 && text[index + 2] & 0xFE == 0xA8:
      3
    default: 0
    }
  }

  private mutating func appendEscapedSeparator(length: Int, last: UInt8) {
    if length == 2 {
      append(literal: "\\u0085")
    } else if last == 0xA8 {
      append(literal: "\\u2028")
    } else {
      append(literal: "\\u2029")
    }
  }

  private mutating func appendEscape(of byte: UInt8) {
    switch byte {
    case 0x22: append(literal: "\\\"")
    case 0x5C: append(literal: "\\\\")
    case 0x08: append(literal: "\\b")
    case 0x0C: append(literal: "\\f")
    case 0x0A: append(literal: "\\n")
    case 0x0D: append(literal: "\\r")
    case 0x09: append(literal: "\\t")
    default:
      append(literal: "\\u00")
      for digit in [byte >> 4, byte & 0xF] {
        bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
      }
    }
  }
}
