/// JSON with its members in order and its numbers as they are spelled.
indirect enum ReferenceJSON: Hashable {
  case null
  case boolean(Bool)
  case number(String)
  case string(String)
  case array([ReferenceJSON])
  case object([(name: String, value: ReferenceJSON)])

  static func == (left: ReferenceJSON, right: ReferenceJSON) -> Bool { left.text == right.text }
  func hash(into hasher: inout Hasher) { hasher.combine(text) }

  /// Compact.
  var text: String {
    switch self {
    case .null: "null"
    case .boolean(let value): value ? "true" : "false"
    case .number(let digits): digits
    case .string(let text): ReferenceValue.jsonString(text)
    case .array(let items): "[" + items.map(\.text).joined(separator: ",") + "]"
    case .object(let members):
      "{"
        + members.map { ReferenceValue.jsonString($0.name) + ":" + $0.value.text }
        .joined(separator: ",") + "}"
    }
  }

  /// As an SQL value.
  func value() throws -> ReferenceValue {
    switch self {
    case .null: .null
    case .boolean(let value): .integer(value ? 1 : 0)
    case .number(let digits):
      digits.contains { ".eE".contains($0) }
        ? .real(try ReferenceValue.realPrefix(digits)) : .integer(Int128(digits) ?? 0)
    case .string(let text): .text(text)
    case .array, .object: .text(text)
    }
  }

  /// The member of an object or the item of an array that has this name.
  func member(_ name: String) -> ReferenceJSON? {
    switch self {
    case .object(let members): members.last { $0.name == name }?.value
    case .array(let items): Int(name).flatMap { items.indices.contains($0) ? items[$0] : nil }
    default: nil
    }
  }

  /// The value of a text; throws where it is no JSON.
  static func parse(_ text: String) throws -> ReferenceJSON {
    var parser = Parser(rest: Array(text.unicodeScalars)[...])
    let value = try parser.value()
    parser.skipBlanks()
    guard parser.rest.isEmpty else { throw ReferenceValue.RowError() }
    return value
  }

  private struct Parser {
    var rest: ArraySlice<Unicode.Scalar>

    mutating func skipBlanks() {
      while let next = rest.first, " \t\r\n".unicodeScalars.contains(next) { rest.removeFirst() }
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
      skipBlanks()
      guard rest.first == scalar else { return false }
      rest.removeFirst()
      return true
    }

    private mutating func require(_ scalar: Unicode.Scalar) throws {
      guard take(scalar) else { throw ReferenceValue.RowError() }
    }

    mutating func value() throws -> ReferenceJSON {
      skipBlanks()
      for (word, value) in [
        ("null", .null), ("true", .boolean(true)), ("false", .boolean(false)),
      ] as [(String, ReferenceJSON)] where rest.starts(with: word.unicodeScalars) {
        rest.removeFirst(word.count)
        return value
      }
      if take("[") { return try array() }
      if take("{") { return try object() }
      if rest.first == "\"" { return .string(try string()) }
      let digits = rest.prefix { "+-.0123456789eE".unicodeScalars.contains($0) }
      var text = ""
      text.unicodeScalars.append(contentsOf: digits)
      guard text.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil else {
        throw ReferenceValue.RowError()
      }
      rest.removeFirst(digits.count)
      return .number(text)
    }

    private mutating func array() throws -> ReferenceJSON {
      var items: [ReferenceJSON] = []
      if take("]") { return .array(items) }
      repeat { items.append(try value()) } while take(",")
      try require("]")
      return .array(items)
    }

    private mutating func object() throws -> ReferenceJSON {
      var members: [(name: String, value: ReferenceJSON)] = []
      if take("}") { return .object(members) }
      repeat {
        skipBlanks()
        let name = try string()
        try require(":")
        members.append((name, try value()))
      } while take(",")
      try require("}")
      return .object(members)
    }

    /// The generator writes no escapes but those of quotes.
    private mutating func string() throws -> String {
      try require("\"")
      var text = ""
      while let next = rest.popFirst() {
        if next == "\"" { return text }
        if next == "\\" {
          guard let escaped = rest.popFirst(), escaped == "\"" || escaped == "\\" else {
            throw ReferenceValue.Unmodelled()
          }
          text.unicodeScalars.append(escaped)
        } else {
          text.unicodeScalars.append(next)
        }
      }
      throw ReferenceValue.RowError()
    }
  }
}
