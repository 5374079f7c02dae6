/// Decodes a scalar's text a second time, as libyaml does, to learn where each byte comes from.
///
/// The result is checked against libyaml's: where the two differ, every position maps to the whole
/// scalar, so a message is less exact but never points at the wrong place.
struct ScalarDecoder {
  private struct Piece {
    var bytes: [UInt8]
    var start: Int
    var end: Int
  }

  private let source: [UInt8]
  private let start: Int
  private let end: Int
  private var position: Int
  private var output: [Piece] = []

  private init(source: [UInt8], start: Int, end: Int) {
    self.source = source
    self.start = start
    self.end = min(end, source.count)
    position = start
  }

  static func map(_ scalar: YAMLScalar, in file: SourceFile) -> SourceMap {
    let expected = Array(scalar.text.utf8)
    let source = file.bytes
    let start = min(scalar.span.start, source.count)
    let base = ScalarDecoder(source: source, start: start, end: scalar.span.end)
    switch scalar.style {
    case .plain, .singleQuoted, .doubleQuoted:
      var decoder = base
      decoder.flow(scalar.style)
      if let map = decoder.result(expected, scalar.span) { return map }
    case .literal, .folded:
      for indent in base.indents() {
        var decoder = base
        decoder.block(isLiteral: scalar.style == .literal, indent: indent)
        if let map = decoder.result(expected, scalar.span) { return map }
      }
    }
    return SourceMap(
      starts: expected.map { _ in scalar.span.start }, ends: expected.map { _ in scalar.span.end },
      whole: scalar.span)
  }

  private func result(_ expected: [UInt8], _ whole: SourceSpan) -> SourceMap? {
    guard output.flatMap(\.bytes) == expected else { return nil }
    return SourceMap(
      starts: output.flatMap { piece in piece.bytes.map { _ in piece.start } },
      ends: output.flatMap { piece in piece.bytes.map { _ in piece.end } }, whole: whole)
  }

  // MARK: Characters

  private func byte(_ distance: Int = 0) -> UInt8? {
    position + distance < end ? source[position + distance] : nil
  }

  private var isBlank: Bool { byte() == 0x20 || byte() == 0x09 }

  /// The length of the line break at the position, 0 if there is none, and what it decodes to.
  private var lineBreak: (length: Int, decoded: [UInt8]) {
    switch byte() {
    case 0x0A: return (1, [0x0A])
    case 0x0D: return (byte(1) == 0x0A ? 2 : 1, [0x0A])
    case 0xC2 where byte(1) == 0x85: return (2, [0x0A])
    case 0xE2 where byte(1) == 0x80 && (byte(2) == 0xA8 || byte(2) == 0xA9):
      return (3, Array(source[position..<(position + 3)]))
    default: return (0, [])
    }
  }

  private var isBreak: Bool { lineBreak.length > 0 }

  private mutating func takeCharacter() -> Piece {
    let first = position
    position += 1
    while let next = byte(), next & 0xC0 == 0x80 { position += 1 }
    return Piece(bytes: Array(source[first..<position]), start: first, end: position)
  }

  private mutating func takeBreak() -> Piece {
    let (length, decoded) = lineBreak
    defer { position += length }
    return Piece(bytes: decoded, start: position, end: position + length)
  }

  private mutating func skipBreak() { position += max(lineBreak.length, 1) }

  // MARK: Plain and quoted scalars

  private mutating func flow(_ style: YAMLScalar.Style) {
    let quote: UInt8? =
      switch style {
      case .singleQuoted: UInt8(ascii: "'")
      case .doubleQuoted: UInt8(ascii: "\"")
      default: nil
      }
    if let quote {
      // An anchor or a tag may stand in front.
      while let next = byte(), next != quote { position += 1 }
      position += 1
    } else {
      skipProperties()
    }
    while position < end {
      var wasEscapedBreak = false
      while position < end, !isBlank, !isBreak, !wasEscapedBreak {
        if let quote, byte() == quote {
          guard style == .singleQuoted, byte(1) == quote else { return }
          output.append(Piece(bytes: [quote], start: position, end: position + 2))
          position += 2
        } else if style == .doubleQuoted, byte() == UInt8(ascii: "\\") {
          wasEscapedBreak = escape()
        } else {
          output.append(takeCharacter())
        }
      }
      fold(afterEscapedBreak: wasEscapedBreak)
    }
  }

  /// Blanks and breaks between words: one break is a blank, more are one fewer.
  private mutating func fold(afterEscapedBreak: Bool) {
    var isLeading = afterEscapedBreak
    var blanks: [Piece] = []
    var leading: Piece?
    var trailing: [Piece] = []
    while position < end, isBlank || isBreak {
      if isBlank {
        let piece = takeCharacter()
        if !isLeading { blanks.append(piece) }
      } else if isLeading {
        trailing.append(takeBreak())
      } else {
        blanks = []
        leading = takeBreak()
        isLeading = true
      }
    }
    guard isLeading else {
      output += blanks
      return
    }
    if var leading {
      if leading.bytes != [0x0A] {
        output.append(leading)
      } else if trailing.isEmpty {
        leading.bytes = [0x20]
        output.append(leading)
      }
    }
    output += trailing
  }

  /// A backslash and what follows. Returns whether it joined two lines.
  private mutating func escape() -> Bool {
    let first = position
    position += 1
    if isBreak {
      skipBreak()
      return true
    }
    guard let letter = byte() else { return false }
    position += 1
    let digits =
      switch letter {
      case UInt8(ascii: "x"): 2
      case UInt8(ascii: "u"): 4
      case UInt8(ascii: "U"): 8
      default: 0
      }
    var value = Self.escapes[letter].map { $0.value } ?? UInt32(letter)
    if digits > 0 {
      let text = String(decoding: source[position..<min(position + digits, end)], as: UTF8.self)
      value = UInt32(text, radix: 16) ?? 0xFFFD
      position = min(position + digits, end)
    }
    let scalar = Unicode.Scalar(value) ?? "\u{FFFD}"
    output.append(
      Piece(bytes: Array(String(scalar).utf8), start: first, end: position))
    return false
  }

  private static let escapes: [UInt8: Unicode.Scalar] = [
    UInt8(ascii: "0"): "\0", UInt8(ascii: "a"): "\u{7}", UInt8(ascii: "b"): "\u{8}",
    UInt8(ascii: "t"): "\t", UInt8(ascii: "n"): "\n", UInt8(ascii: "v"): "\u{B}",
    UInt8(ascii: "f"): "\u{C}", UInt8(ascii: "r"): "\r", UInt8(ascii: "e"): "\u{1B}",
    UInt8(ascii: "N"): "\u{85}", UInt8(ascii: "_"): "\u{A0}", UInt8(ascii: "L"): "\u{2028}",
    UInt8(ascii: "P"): "\u{2029}", UInt8(ascii: "\t"): "\t",
  ]

  /// Skips an anchor and a tag in front of a value.
  private mutating func skipProperties() {
    while byte() == UInt8(ascii: "&") || byte() == UInt8(ascii: "!") {
      while position < end, !isBlank, !isBreak { position += 1 }
      while position < end, isBlank || isBreak { position += 1 }
    }
  }

  // MARK: Literal and folded scalars

  /// The indentations the content may have: first that of its first line, then all smaller ones
  /// (an indicator such as `|2` leaves more blanks to the content).
  private func indents() -> [Int] {
    var decoder = self
    decoder.skipHeader()
    var widest = 0
    while decoder.position < decoder.end {
      var column = 0
      while decoder.byte() == 0x20 {
        column += 1
        decoder.position += 1
      }
      widest = max(widest, column)
      guard decoder.isBreak else { break }
      decoder.skipBreak()
    }
    return Array((0...min(widest, 200)).reversed())
  }

  private mutating func skipHeader() {
    skipProperties()
    while position < end, !isBreak { position += 1 }
    skipBreak()
  }

  private mutating func block(isLiteral: Bool, indent: Int) {
    skipProperties()
    var chomping: UInt8?
    while let next = byte(), !isBlank, !isBreak {
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { chomping = next }
      position += 1
    }
    while position < end, !isBreak { position += 1 }
    skipBreak()

    var leading: Piece?
    var wasBlank = false
    var (column, trailing) = blockBreaks(indent)
    while column == indent, position < end {
      let startsBlank = isBlank
      if !isLiteral, var space = leading, space.bytes == [0x0A], !wasBlank, !startsBlank {
        space.bytes = [0x20]
        if trailing.isEmpty { output.append(space) }
      } else if let leading {
        output.append(leading)
      }
      output += trailing
      wasBlank = startsBlank
      while position < end, !isBreak { output.append(takeCharacter()) }
      leading = isBreak ? takeBreak() : nil
      (column, trailing) = blockBreaks(indent)
    }
    if chomping != UInt8(ascii: "-"), let leading { output.append(leading) }
    if chomping == UInt8(ascii: "+") { output += trailing }
  }

  /// Skips indentation and empty lines, collecting their breaks.
  private mutating func blockBreaks(_ indent: Int) -> (column: Int, breaks: [Piece]) {
    var breaks: [Piece] = []
    while true {
      var column = 0
      while column < indent, byte() == 0x20 {
        column += 1
        position += 1
      }
      guard isBreak else { return (column, breaks) }
      breaks.append(takeBreak())
    }
  }
}
