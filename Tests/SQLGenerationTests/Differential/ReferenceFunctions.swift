import Foundation

/// The functions of the rules language, and its access to JSON.
enum ReferenceFunctions {
  static func call(_ name: String, _ arguments: [ReferenceValue]) throws -> ReferenceValue {
    let first = arguments[0]
    switch name {
    case "upper": return first.asText.map { .text($0.uppercased()) } ?? .null
    case "lower": return first.asText.map { .text($0.lowercased()) } ?? .null
    case "substring": return try substring(arguments)
    case "hex": return .text(first.asBytes.map { String(format: "%02X", $0) }.joined())
    case "base64": return .text(Data(first.asBytes).base64EncodedString())
    case "length":
      if case .blob(let bytes) = first { return .integer(Int128(bytes.count)) }
      return first.asText.map { .integer(Int128($0.utf16.count)) } ?? .null
    case "typeof": return .text(first.typeName)
    case "ifnull": return first == .null ? arguments[1] : first
    case "iif": return first.isTrue ? arguments[1] : arguments[2]
    case "instr": return instr(first, arguments[1])
    case "json_array_length":
      guard let text = first.asText else { return .null }
      guard case .array(let items) = try ReferenceJSON.parse(text) else { return .integer(0) }
      return .integer(Int128(items.count))
    default: throw ReferenceValue.Unmodelled()
    }
  }

  /// From 1; 0 is a place before the first; a negative start counts from the end, a negative length backwards.
  private static func substring(_ arguments: [ReferenceValue]) throws -> ReferenceValue {
    guard let text = arguments[0].asText, !arguments.contains(.null) else { return .null }
    let units = Array(text.utf16)
    var start = try integer(arguments[1])
    var length = arguments.count > 2 ? try integer(arguments[2]) : Int128(units.count)
    if start == 0 {
      if arguments.count > 2 { length -= 1 }
      start = 1
    } else if start < 0 {
      start = max(Int128(units.count) + start + 1, 1)
    }
    let from = start - 1
    let (low, high) = length < 0 ? (from + length, from) : (from, from + length)
    let range = clamp(low, units.count)..<clamp(max(low, high), units.count)
    let part = Array(units[range])
    let result = String(decoding: part, as: UTF16.self)
    guard Array(result.utf16) == part else { throw ReferenceValue.Unmodelled() }
    return .text(result)
  }

  private static func clamp(_ value: Int128, _ count: Int) -> Int {
    Int(min(max(value, 0), Int128(count)))
  }

  private static func integer(_ value: ReferenceValue) throws -> Int128 {
    switch value {
    case .integer(let value): value
    case .real(let value): Int128(value.rounded(.down))
    default: try ReferenceValue.integerPrefix(value.asText ?? "")
    }
  }

  private static func instr(_ text: ReferenceValue, _ part: ReferenceValue) -> ReferenceValue {
    guard let whole = text.asText, let sought = part.asText else { return .null }
    let (units, needle) = (Array(whole.utf16), Array(sought.utf16))
    for start in 0...units.count where units[start...].starts(with: needle) {
      return .integer(Int128(start + 1))
    }
    return .integer(0)
  }

  static func member(
    _ value: ReferenceValue, _ path: String, asValue: Bool
  ) throws -> ReferenceValue {
    guard let text = value.asText else { return .null }
    var found: ReferenceJSON? = try ReferenceJSON.parse(text)
    let names =
      path.hasPrefix("$") ? path.split(separator: ".").dropFirst().map(String.init) : [path]
    for name in names { found = found?.member(name) }
    guard let found else { return .null }
    return asValue ? try found.value() : .text(found.text)
  }

  static func contains(_ value: ReferenceValue, list: ReferenceValue) throws -> ReferenceValue {
    guard let text = list.asText else { return .null }
    guard case .array(let items) = try ReferenceJSON.parse(text) else {
      throw ReferenceValue.RowError()
    }
    if value == .null { return .null }
    let isThere = try items.contains { item in
      switch item {
      case .null, .array, .object: false
      default: try item.value().compared(to: value) == 0
      }
    }
    return ReferenceExpression.boolean(isThere)
  }
}
