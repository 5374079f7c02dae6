/// A value in a YAML document, with the bytes of the file it stands in.
package struct YAMLNode: Sendable {
  package enum Kind: Sendable {
    case scalar(YAMLScalar)
    case sequence([YAMLNode])
    case mapping([YAMLEntry])
  }

  package var kind: Kind
  package var span: SourceSpan
  /// An explicit tag such as `!name`.
  package var tag: String?

  /// What messages call this node: "a mapping".
  package var kindName: String {
    switch kind {
    case .sequence: "a list"
    case .mapping: "a mapping"
    case .scalar(let scalar):
      switch scalar.resolved {
      case .null: "nothing"
      case .boolean: "true or false"
      case .integer, .number: "a number"
      case .string: "a string"
      }
    }
  }
}

/// One `key: value` of a mapping.
package struct YAMLEntry: Sendable {
  package var key: String
  package var keySpan: SourceSpan
  package var value: YAMLNode
}

/// A scalar's text after escapes and folding.
package struct YAMLScalar: Sendable {
  package enum Style: Sendable {
    case plain
    case singleQuoted
    case doubleQuoted
    case literal
    case folded
  }

  /// What the text means by YAML's core schema.
  package enum Resolved: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int)
    /// A number that is no `Int`.
    case number(Double)
    case string(String)
  }

  package var text: String
  package var style: Style
  package var span: SourceSpan
  /// Whether a `!!str` tag or quotes make it a string whatever it looks like.
  package var isString: Bool

  package var resolved: Resolved {
    if isString { return .string(text) }
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE": return .boolean(true)
    case "false", "False", "FALSE": return .boolean(false)
    default: return Self.number(text) ?? .string(text)
    }
  }

  private static func number(_ text: String) -> Resolved? {
    if text.hasPrefix("0x"), let value = Int(text.dropFirst(2), radix: 16) {
      return .integer(value)
    }
    if text.hasPrefix("0o"), let value = Int(text.dropFirst(2), radix: 8) {
      return .integer(value)
    }
    let unsigned = text.first == "-" || text.first == "+" ? text.dropFirst() : text[...]
    guard let first = unsigned.utf8.first else { return nil }
    switch unsigned {
    case ".inf", ".Inf", ".INF": return .number(text.first == "-" ? -.infinity : .infinity)
    case ".nan", ".NaN", ".NAN": return unsigned.count == text.count ? .number(.nan) : nil
    default: break
    }
    let isDigit = UInt8(ascii: "0")...UInt8(ascii: "9") ~= first
    guard isDigit || first == UInt8(ascii: "."), unsigned != ".",
      unsigned.utf8.allSatisfy({ "0123456789.eE+-".utf8.contains($0) })
    else { return nil }
    if let value = Int(text) { return .integer(value) }
    return Double(text).map { .number($0) }
  }
}
