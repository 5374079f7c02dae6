import Foundation

/// JSON whose objects keep the order of their members: the published cases depend on it.
enum CaseValue: Equatable {
  case null
  case boolean(Bool)
  case number(String)
  case string(String)
  case array([CaseValue])
  case object([(name: String, value: CaseValue)])

  static func == (left: CaseValue, right: CaseValue) -> Bool { left.text == right.text }

  /// A file of the published cases.
  static func file(_ name: String, in directory: String = "Cases") throws -> CaseValue {
    let directory = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: directory)
    let data = try Data(contentsOf: directory.appending(path: name))
    return CaseValue(parsing: String(decoding: data, as: UTF8.self))
  }

  init(parsing text: String) {
    var parser = CaseParser(bytes: Array(text.utf8))
    self = parser.value()
  }

  subscript(name: String) -> CaseValue? {
    members.first { $0.name == name }?.value
  }

  var members: [(name: String, value: CaseValue)] {
    if case .object(let members) = self { return members }
    return []
  }

  var elements: [CaseValue] {
    if case .array(let elements) = self { return elements }
    return []
  }

  var string: String? {
    if case .string(let string) = self { return string }
    return nil
  }

  var number: Int? {
    if case .number(let digits) = self { return Int(digits) }
    return nil
  }

  /// Compact JSON.
  var text: String {
    switch self {
    case .null: "null"
    case .boolean(let value): value ? "true" : "false"
    case .number(let digits): digits
    case .string(let string): Self.quoted(string)
    case .array(let elements): "[" + elements.map(\.text).joined(separator: ",") + "]"
    case .object(let members):
      "{" + members.map { Self.quoted($0.name) + ":" + $0.value.text }.joined(separator: ",") + "}"
    }
  }

  static func quoted(_ string: String) -> String {
    var result = "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case "\n": result += "\\n"
      case "\u{0}"..<" ": result += "\\u" + String(format: "%04x", scalar.value)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}

/// Reads JSON that is known to be well-formed.
private struct CaseParser {
  let bytes: [UInt8]
  var index = 0

  mutating func value() -> CaseValue {
    skipSpace()
    switch bytes[index] {
    case UInt8(ascii: "{"):
      var members: [(String, CaseValue)] = []
      index += 1
      while peek() != UInt8(ascii: "}") {
        let name = string()
        _ = peek()
        index += 1
        members.append((name, value()))
        if peek() == UInt8(ascii: ",") { index += 1 }
      }
      index += 1
      return .object(members)
    case UInt8(ascii: "["):
      var elements: [CaseValue] = []
      index += 1
      while peek() != UInt8(ascii: "]") {
        elements.append(value())
        if peek() == UInt8(ascii: ",") { index += 1 }
      }
      index += 1
      return .array(elements)
    case UInt8(ascii: "\""):
      return .string(string())
    default:
      let start = index
      while index < bytes.count, !" \n\r\t,]}".utf8.contains(bytes[index]) { index += 1 }
      let word = String(decoding: bytes[start..<index], as: UTF8.self)
      switch word {
      case "true": return .boolean(true)
      case "false": return .boolean(false)
      case "null": return .null
      default: return .number(word)
      }
    }
  }

  private mutating func peek() -> UInt8 {
    skipSpace()
    return bytes[index]
  }

  private mutating func skipSpace() {
    while index < bytes.count, " \n\r\t".utf8.contains(bytes[index]) { index += 1 }
  }

  private mutating func string() -> String {
    skipSpace()
    let start = index
    index += 1
    while bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    index += 1
    let literal = Data(bytes[start..<index])
    // The cases hold no text that Foundation refuses.
    return
      (try? JSONDecoder().decode([String].self, from: Data("[".utf8) + literal + Data("]".utf8)))?
      .first ?? String(decoding: literal, as: UTF8.self)
  }
}
