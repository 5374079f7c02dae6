/// A strict reader that walks over JSON text in place and builds nothing.
///
/// The bytes must outlive the cursor. Every function leaves `position` after what it read, or throws a coded error; no
/// input makes it trap.
package struct JSONCursor {
  package let bytes: UnsafeBufferPointer<UInt8>
  package let direction: WireDirection
  package internal(set) var position = 0
  /// How many values may still be skipped inside arrays and objects.
  package var elementsLeft = Int.max
  /// The deepest nesting that `skipValue` accepts.
  package var depthLimit = 256

  package init(_ bytes: UnsafeBufferPointer<UInt8>, direction: WireDirection) {
    self.bytes = bytes
    self.direction = direction
  }

  package init(_ bytes: UnsafeRawBufferPointer, direction: WireDirection) {
    self.init(bytes.assumingMemoryBound(to: UInt8.self), direction: direction)
  }

  // MARK: Structure

  @inline(__always)
  package mutating func skipWhitespace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  /// Skips white space and tells the next byte without consuming it; 0 at the end.
  @inline(__always)
  package mutating func peek() -> UInt8 {
    skipWhitespace()
    return position < bytes.count ? bytes[position] : 0
  }

  /// Consumes `byte` if it comes next.
  @inline(__always)
  package mutating func consume(_ byte: UInt8) -> Bool {
    guard peek() == byte, position < bytes.count else { return false }
    position += 1
    return true
  }

  /// Consumes `byte`, which must come next.
  @inline(__always)
  package mutating func expect(_ byte: UInt8) throws(ProtocolError) {
    guard consume(byte) else { throw malformed() }
  }

  /// Requires that nothing but white space is left.
  package mutating func expectEnd() throws(ProtocolError) {
    skipWhitespace()
    guard position == bytes.count else { throw malformed() }
  }

  /// Inside an array or object: whether another element follows. Consumes the comma or the closing bracket.
  @inline(__always)
  package mutating func nextElement(first: inout Bool, close: UInt8) throws(ProtocolError) -> Bool {
    if consume(close) { return false }
    if first {
      first = false
      if position >= bytes.count { throw malformed() }
      return true
    }
    try expect(UInt8(ascii: ","))
    // A closing bracket after a comma is caught by whatever reads the next value.
    return true
  }

  // MARK: Values

  /// Reads a string and gives a view of what is between its quotes.
  @inline(__always)
  package mutating func readString() throws(ProtocolError) -> JSONTextView {
    guard peek() == UInt8(ascii: "\"") else { throw malformed() }
    position += 1
    let start = position
    var escaped = false
    while true {
      scanPlainText()
      guard position < bytes.count else { throw malformed() }
      switch bytes[position] {
      case UInt8(ascii: "\""):
        let text = UnsafeBufferPointer(rebasing: bytes[start..<position])
        position += 1
        return JSONTextView(raw: text, hasEscapes: escaped)
      case UInt8(ascii: "\\"):
        escaped = true
        try skipEscape()
      default:
        throw malformed()
      }
    }
  }

  /// Reads a number and gives a view of its text.
  package mutating func readNumber() throws(ProtocolError) -> JSONNumberView {
    skipWhitespace()
    let start = position
    var isInteger = true
    if position < bytes.count, bytes[position] == UInt8(ascii: "-") { position += 1 }
    let firstDigit = position
    guard skipDigits() else { throw malformed() }
    if bytes[firstDigit] == UInt8(ascii: "0"), position - firstDigit > 1 { throw malformed() }
    if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
      isInteger = false
      position += 1
      guard skipDigits() else { throw malformed() }
    }
    if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      position += 1
      if position < bytes.count,
        bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-")
      {
        position += 1
      }
      let exponent = position
      guard skipDigits() else { throw malformed() }
      if direction == .request, position - exponent > 3 { throw numberOutOfRange() }
    }
    if direction == .request, position - start > 400 { throw numberOutOfRange() }
    return JSONNumberView(
      raw: UnsafeBufferPointer(rebasing: bytes[start..<position]), isInteger: isInteger)
  }

  /// Reads any value and gives a view of it.
  package mutating func readValue() throws(ProtocolError) -> JSONValueView {
    switch peek() {
    case UInt8(ascii: "\""): return .text(try readString())
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let start = position
      try skipValue()
      return .container(UnsafeBufferPointer(rebasing: bytes[start..<position]))
    case UInt8(ascii: "n"):
      try expectWord("null")
      return .null
    case UInt8(ascii: "t"):
      try expectWord("true")
      return .boolean(true)
    case UInt8(ascii: "f"):
      try expectWord("false")
      return .boolean(false)
    default: return .number(try readNumber())
    }
  }

  /// Walks over any value, checking it.
  package mutating func skipValue() throws(ProtocolError) { try skipValue(depth: 1) }

  private mutating func skipValue(depth: Int) throws(ProtocolError) {
    switch peek() {
    case UInt8(ascii: "\""): _ = try readString()
    case UInt8(ascii: "{"):
      try checkDepth(depth)
      position += 1
      var first = true
      while try nextElement(first: &first, close: UInt8(ascii: "}")) {
        try countElement()
        _ = try readString()
        try expect(UInt8(ascii: ":"))
        try skipValue(depth: depth + 1)
      }
    case UInt8(ascii: "["):
      try checkDepth(depth)
      position += 1
      var first = true
      while try nextElement(first: &first, close: UInt8(ascii: "]")) {
        try countElement()
        try skipValue(depth: depth + 1)
      }
    case UInt8(ascii: "n"): try expectWord("null")
    case UInt8(ascii: "t"): try expectWord("true")
    case UInt8(ascii: "f"): try expectWord("false")
    default: _ = try readNumber()
    }
  }

  /// Consumes a literal word.
  package mutating func expectWord(_ word: StaticString) throws(ProtocolError) {
    skipWhitespace()
    let count = word.utf8CodeUnitCount
    guard bytes.count - position >= count else { throw malformed() }
    for offset in 0..<count where bytes[position + offset] != word.utf8Start[offset] {
      throw malformed()
    }
    position += count
  }

  // MARK: Pieces

  /// Moves over bytes that need no attention inside a string, eight at a time.
  @inline(__always)
  private mutating func scanPlainText() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    let raw = UnsafeRawBufferPointer(bytes)
    while bytes.count - position >= 8 {
      let word = UInt64(
        littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      let quote = word ^ (ones &* 0x22)
      let slash = word ^ (ones &* 0x5C)
      let found =
        (((word &- ones &* 0x20) & ~word) | ((quote &- ones) & ~quote)
          | ((slash &- ones) & ~slash)) & highs
      if found != 0 {
        position += found.trailingZeroBitCount >> 3
        return
      }
      position += 8
    }
    while position < bytes.count {
      let byte = bytes[position]
      if byte == 0x22 || byte == 0x5C || byte < 0x20 { return }
      position += 1
    }
  }

  private mutating func skipEscape() throws(ProtocolError) {
    guard bytes.count - position >= 2 else { throw malformed() }
    let kind = bytes[position + 1]
    position += 2
    switch kind {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
      UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return
    case UInt8(ascii: "u"): break
    default: throw malformed()
    }
    let unit = try readHexUnit()
    guard direction == .request else { return }
    if unit == 0 {
      throw direction.error(.nul, "A string contains U+0000, which no database text can hold.")
    }
    if unit >> 10 == 0x37 { throw loneSurrogate() }
    guard unit >> 10 == 0x36 else { return }
    guard bytes.count - position >= 6, bytes[position] == UInt8(ascii: "\\"),
      bytes[position + 1] == UInt8(ascii: "u")
    else { throw loneSurrogate() }
    position += 2
    guard try readHexUnit() >> 10 == 0x37 else { throw loneSurrogate() }
  }

  private mutating func readHexUnit() throws(ProtocolError) -> UInt16 {
    guard bytes.count - position >= 4 else { throw malformed() }
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let digit = hexadecimalDigit(bytes[position]) else { throw malformed() }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }

  private mutating func skipDigits() -> Bool {
    let start = position
    while position < bytes.count, bytes[position] &- UInt8(ascii: "0") < 10 { position += 1 }
    return position > start
  }

  private mutating func countElement() throws(ProtocolError) {
    elementsLeft -= 1
    if elementsLeft < 0 {
      throw direction.error(.size, "A value has more elements than are accepted.")
    }
  }

  private func checkDepth(_ depth: Int) throws(ProtocolError) {
    if depth > depthLimit {
      throw direction.error(.depth, "A value is nested deeper than \(depthLimit) levels.")
    }
  }

  // MARK: Errors

  package func malformed() -> ProtocolError {
    direction.error(.json, "This is not well-formed JSON at byte \(position).")
  }

  private func loneSurrogate() -> ProtocolError {
    direction.error(
      .surrogate, "A string contains half of a surrogate pair before byte \(position).")
  }

  private func numberOutOfRange() -> ProtocolError {
    direction.error(.number, "The number at byte \(position) is outside what can be stored.")
  }
}

/// The value of one hexadecimal digit of either case.
@inline(__always)
func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case 0x30...0x39: byte - 0x30
  case 0x61...0x66: byte - 0x57
  case 0x41...0x46: byte - 0x37
  default: nil
  }
}
