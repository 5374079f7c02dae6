/// Cuts SQL text into tokens.
///
/// Comments and white space disappear. A text that cannot be cut (an unterminated string, a
/// character that begins no token) gives the tokens before it, an end token, and a problem.
struct SQLLexer {
  struct Problem: Sendable, Hashable {
    var message: String
    var remedy: String?
    var range: Range<Int>
  }

  private let bytes: [UInt8]
  private var position = 0
  private var tokens: [SQLToken] = []
  private var problem: Problem?

  private init(_ text: String) {
    bytes = Array(text.utf8)
  }

  static func tokens(of text: String) -> (tokens: [SQLToken], problem: Problem?) {
    var lexer = SQLLexer(text)
    lexer.run()
    return (lexer.tokens, lexer.problem)
  }

  /// Longest first.
  private static let symbols = [
    "!~~*", "!~*", "!~~", "->>", "#>>", "~~*", "->", "#>", "#-", "||", "&&", "<=", ">=", "<>", "!=",
    "<<", ">>", "@>", "<@", "?|", "?&", "!~", "~*", "~~", "@@", "::", "+", "-", "*", "/", "%", "=",
    "<", ">", "|", "&", "#", "^", "~", "?", "(", ")", "[", "]", ",", ".", ";",
  ].map { Array($0.utf8) }

  private mutating func run() {
    while problem == nil {
      skipBlanks()
      guard problem == nil, let byte = peek() else { break }
      let start = position
      switch byte {
      case UInt8(ascii: "'"): string(from: start, hasEscapes: false)
      case UInt8(ascii: "e"), UInt8(ascii: "E"):
        if peek(1) == UInt8(ascii: "'") {
          position += 1
          string(from: start, hasEscapes: true)
        } else {
          word()
        }
      case UInt8(ascii: "\""): quotedName()
      case UInt8(ascii: "0")...UInt8(ascii: "9"): number()
      case UInt8(ascii: "$"), UInt8(ascii: ":"):
        if byte == UInt8(ascii: ":"), peek(1) == byte { symbol() } else { placeholder() }
      default:
        if Self.beginsWord(byte) { word() } else { symbol() }
      }
    }
    let end = problem?.range.lowerBound ?? bytes.count
    tokens.append(SQLToken(kind: .end, text: "", range: end..<end))
  }

  private func peek(_ distance: Int = 0) -> UInt8? {
    position + distance < bytes.count ? bytes[position + distance] : nil
  }

  private static func beginsWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "_"), 0x80...0xFF:
      true
    default: false
    }
  }

  private static func continuesWord(_ byte: UInt8) -> Bool {
    beginsWord(byte) || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || byte == UInt8(ascii: "$")
  }

  private mutating func add(_ kind: SQLToken.Kind, _ text: [UInt8], from start: Int) {
    tokens.append(
      SQLToken(kind: kind, text: String(decoding: text, as: UTF8.self), range: start..<position))
  }

  private mutating func fail(_ message: String, remedy: String? = nil, from start: Int, to end: Int)
  {
    problem = Problem(message: message, remedy: remedy, range: start..<min(end, bytes.count))
  }

  private mutating func skipBlanks() {
    while let byte = peek() {
      if [0x20, 0x09, 0x0A, 0x0D, 0x0C, 0x0B].contains(byte) {
        position += 1
      } else if byte == UInt8(ascii: "-"), peek(1) == byte {
        while let next = peek(), next != 0x0A { position += 1 }
      } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
        comment()
      } else {
        return
      }
    }
  }

  /// `/* … */`, which may be nested.
  private mutating func comment() {
    let start = position
    var depth = 0
    while let byte = peek() {
      if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
        depth += 1
        position += 2
      } else if byte == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
        depth -= 1
        position += 2
        if depth == 0 { return }
      } else {
        position += 1
      }
    }
    fail("this comment does not end", remedy: "close it with */", from: start, to: start + 2)
  }

  private mutating func word() {
    let start = position
    while let byte = peek(), Self.continuesWord(byte) { position += 1 }
    add(.word, Array(bytes[start..<position]), from: start)
  }

  private mutating func quotedName() {
    let start = position
    var text: [UInt8] = []
    position += 1
    while let byte = peek() {
      position += 1
      guard byte == UInt8(ascii: "\"") else {
        text.append(byte)
        continue
      }
      guard peek() == byte else {
        if text.isEmpty { return fail("a quoted name is empty", from: start, to: position) }
        return add(.quotedName, text, from: start)
      }
      text.append(byte)
      position += 1
    }
    fail("this quoted name does not end", remedy: "close it with \"", from: start, to: start + 1)
  }

  private mutating func number() {
    let start = position
    skipDigits()
    var kind = SQLToken.Kind.integer
    if peek() == UInt8(ascii: ".") {
      kind = .real
      position += 1
      skipDigits()
    }
    if let byte = peek(), Self.continuesWord(byte) {
      while let next = peek(), Self.continuesWord(next) { position += 1 }
      return fail(
        "this is not a number", remedy: "write digits, with a decimal point if needed; no exponent",
        from: start, to: position)
    }
    add(kind, Array(bytes[start..<position]), from: start)
  }

  private mutating func skipDigits() {
    while let byte = peek(), UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { position += 1 }
  }

  private mutating func placeholder() {
    let start = position
    position += 1
    while let byte = peek(), Self.continuesWord(byte) { position += 1 }
    fail(
      "rules have no placeholders such as $1 or :name",
      remedy: "use request.user_id() or another accessor of request data", from: start, to: position
    )
  }

  private mutating func symbol() {
    let start = position
    guard let symbol = Self.symbols.first(where: { bytes[start...].starts(with: $0) }) else {
      var end = start + 1
      while end < bytes.count, bytes[end] & 0xC0 == 0x80 { end += 1 }
      return fail("this character has no meaning in a query", from: start, to: end)
    }
    position += symbol.count
    add(.symbol, symbol, from: start)
  }

  // MARK: Strings

  private mutating func string(from start: Int, hasEscapes: Bool) {
    var text: [UInt8] = []
    position += 1
    while let byte = peek() {
      position += 1
      if byte == UInt8(ascii: "'") {
        guard peek() == byte else { return add(.string, text, from: start) }
        text.append(byte)
        position += 1
      } else if hasEscapes, byte == UInt8(ascii: "\\") {
        guard let decoded = escape() else {
          return fail("this escape is not a character", from: position - 1, to: position + 1)
        }
        text += decoded
      } else {
        text.append(byte)
      }
    }
    fail("this string does not end", remedy: "close it with '", from: start, to: start + 1)
  }

  /// What follows a backslash in `E'…'`.
  private mutating func escape() -> [UInt8]? {
    guard let letter = peek() else { return nil }
    switch letter {
    case UInt8(ascii: "x"): return hexadecimal(after: 1, digits: 1...2)
    case UInt8(ascii: "u"): return hexadecimal(after: 1, digits: 4...4)
    case UInt8(ascii: "U"): return hexadecimal(after: 1, digits: 8...8)
    case UInt8(ascii: "b"): return simple(0x08)
    case UInt8(ascii: "f"): return simple(0x0C)
    case UInt8(ascii: "n"): return simple(0x0A)
    case UInt8(ascii: "r"): return simple(0x0D)
    case UInt8(ascii: "t"): return simple(0x09)
    case UInt8(ascii: "0")...UInt8(ascii: "7"): return octal()
    default: return simple(letter)
    }
  }

  private mutating func simple(_ byte: UInt8) -> [UInt8] {
    position += 1
    return [byte]
  }

  private mutating func hexadecimal(after prefix: Int, digits: ClosedRange<Int>) -> [UInt8]? {
    var value: UInt32 = 0
    var count = 0
    while count < digits.upperBound, let byte = peek(prefix + count),
      let digit = Character(Unicode.Scalar(byte)).hexDigitValue
    {
      value = value << 4 | UInt32(digit)
      count += 1
    }
    return finish(value, length: prefix + count, isValid: digits.contains(count))
  }

  private mutating func octal() -> [UInt8]? {
    var value: UInt32 = 0
    var count = 0
    while count < 3, let byte = peek(count), UInt8(ascii: "0")...UInt8(ascii: "7") ~= byte {
      value = value << 3 | UInt32(byte - UInt8(ascii: "0"))
      count += 1
    }
    return finish(value, length: count, isValid: true)
  }

  private mutating func finish(_ value: UInt32, length: Int, isValid: Bool) -> [UInt8]? {
    guard isValid, value != 0, let scalar = Unicode.Scalar(value) else { return nil }
    position += length
    return Array(String(Character(scalar)).utf8)
  }
}
