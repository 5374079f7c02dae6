import Foundation

/// A value of the rules language as its reference describes it, written without a look at the compiler.
enum ReferenceValue: Hashable {
  case null
  case integer(Int128)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// What the reference has no answer for, or this model is too small for.
  struct Unmodelled: Error {}

  /// The row contributes nothing.
  struct RowError: Error {}

  var typeName: String {
    switch self {
    case .null: "null"
    case .integer: "integer"
    case .real: "real"
    case .text: "text"
    case .blob: "blob"
    }
  }

  /// The leading integer of a text decides; NULL and blobs are false.
  var isTrue: Bool {
    switch self {
    case .null, .blob: false
    case .integer(let value): value != 0
    case .real(let value): value != 0
    case .text(let text):
      text.firstMatch(of: /^\s*[+-]?([0-9]+)/)?.1.contains { $0 != "0" } ?? false
    }
  }

  /// The text cast; nil for NULL.
  var asText: String? {
    switch self {
    case .null: nil
    case .integer(let value): "\(value)"
    case .real(let value): Self.scriptText(value)
    case .text(let text): text
    case .blob(let bytes): String(decoding: bytes, as: UTF8.self)
    }
  }

  var asBytes: [UInt8] {
    if case .blob(let bytes) = self { bytes } else { Array((asText ?? "").utf8) }
  }

  /// The number that arithmetic takes; nil for NULL.
  func asNumber() throws -> ReferenceValue? {
    switch self {
    case .null: nil
    case .integer, .real: self
    case .text(let text): try Self.numberPrefix(text)
    case .blob: try Self.numberPrefix(asText ?? "")
    }
  }

  // MARK: Prefixes

  static func integerPrefix(_ text: String) throws -> Int128 {
    guard let match = text.firstMatch(of: /^\s*([+-]?[0-9]+)/) else { return 0 }
    guard let value = Int128(match.1) else { throw Unmodelled() }
    return value
  }

  static func realPrefix(_ text: String) throws -> Double {
    let match = text.firstMatch(of: /^\s*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)/)
    guard let match else { return 0 }
    return try moderate(strtod(String(match.1), nil))
  }

  /// Of large numbers PostgreSQL prints a digit more than JavaScript where the shorter text lies exactly
  /// between two of them.
  static func moderate(_ value: Double) throws -> Double {
    guard value.isFinite, abs(value) < 1e15 else { throw Unmodelled() }
    return value
  }

  static func numberPrefix(_ text: String) throws -> ReferenceValue {
    let match = text.firstMatch(of: /^\s*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)/)
    guard let match else { return .integer(0) }
    if match.1.contains(where: { ".eE".contains($0) }) { return .real(try realPrefix(text)) }
    return .integer(try integerPrefix(text))
  }

  // MARK: Printing

  /// The member's JSON, or nil where it is left out.
  func json() throws -> String? {
    switch self {
    case .null: return "null"
    case .integer(let value): return "\(value)"
    case .real(let value):
      guard value.isFinite else { return "null" }
      // The sign of a zero is nobody's business.
      if value == 0, value.sign == .minus { throw Unmodelled() }
      let text = Self.scriptText(value)
      return text.contains(".") || text.contains("e") ? text : text + ".0"
    case .text(let text): return Self.jsonString(text)
    case .blob: return nil
    }
  }

  static func jsonString(_ text: String) -> String {
    var json = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": json += "\\\""
      case "\\": json += "\\\\"
      case "\n": json += "\\n"
      default: json.unicodeScalars.append(scalar)
      }
    }
    return json + "\""
  }

  /// A double as JavaScript prints it (ECMA-262, Number::toString).
  static func scriptText(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value == 0 { return "0" }
    if value < 0 { return "-" + scriptText(-value) }
    if value.isInfinite { return "Infinity" }
    let parts = "\(value)".split(separator: "e")
    let mantissa = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    let fraction = mantissa.count > 1 ? mantissa[1] : ""
    var digits = String(mantissa[0] + fraction)
    var point = mantissa[0].count + (parts.count > 1 ? Int(parts[1]) ?? 0 : 0)
    while digits.hasPrefix("0") {
      digits.removeFirst()
      point -= 1
    }
    while digits.hasSuffix("0") { digits.removeLast() }
    let count = digits.count
    if count <= point, point <= 21 {
      return digits + String(repeating: "0", count: point - count)
    }
    if 0 < point, point <= 21 { return digits.prefix(point) + "." + digits.dropFirst(point) }
    if -6 < point, point <= 0 { return "0." + String(repeating: "0", count: -point) + digits }
    let exponent = "e" + (point > 0 ? "+" : "-") + "\(abs(point - 1))"
    return count == 1 ? digits + exponent : digits.prefix(1) + "." + digits.dropFirst() + exponent
  }

  // MARK: Comparing

  /// Below, at or above zero as `self` comes before, with or after `other`; nil when one is NULL.
  func compared(to other: ReferenceValue) throws -> Int? {
    func rank(_ value: ReferenceValue) -> Int {
      switch value {
      case .null: 0
      case .integer, .real: 1
      case .text: 2
      case .blob: 3
      }
    }
    switch (self, other) {
    case (.null, _), (_, .null): return nil
    case (.blob, .blob): throw Unmodelled()
    case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
    case (.real(let left), .real(let right)):
      if left.isNaN || right.isNaN { throw Unmodelled() }
      return left < right ? -1 : left > right ? 1 : 0
    case (.integer(let left), .real(let right)): return try Self.compare(left, right)
    case (.real(let left), .integer(let right)): return try -Self.compare(right, left)
    case (.text(let left), .text(let right)):
      let isLess = left.utf8.lexicographicallyPrecedes(right.utf8)
      return left == right ? 0 : isLess ? -1 : 1
    default: return rank(self) < rank(other) ? -1 : 1
    }
  }

  /// Exactly, without rounding the integer.
  private static func compare(_ left: Int128, _ right: Double) throws -> Int {
    guard abs(right) < 1e37 else { throw Unmodelled() }
    let floor = Int128(right.rounded(.down))
    if left != floor { return left < floor ? -1 : 1 }
    return right > right.rounded(.down) ? -1 : 0
  }
}
