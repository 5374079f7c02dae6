/// A value bound to a parameter, sent in text format; the server infers the parameter's type.
package enum PostgresValue: Sendable, Equatable {
  case null
  case text(String)
  case integer(Int64)
  case boolean(Bool)
  case textArray([String?])
  case integerArray([Int64])

  package init(_ text: String?) {
    self = text.map { .text($0) } ?? .null
  }

  package init(_ integer: Int64?) {
    self = integer.map { .integer($0) } ?? .null
  }

  /// The text that the server reads, or nil for NULL.
  var literal: String? {
    switch self {
    case .null: nil
    case .text(let text): text
    case .integer(let integer): String(integer)
    case .boolean(let boolean): boolean ? "t" : "f"
    case .integerArray(let integers): "{" + integers.map(String.init).joined(separator: ",") + "}"
    case .textArray(let elements): Self.arrayLiteral(elements)
    }
  }

  private static func arrayLiteral(_ elements: [String?]) -> String {
    var literal: [UInt8] = [UInt8(ascii: "{")]
    for (index, element) in elements.enumerated() {
      if index > 0 { literal.append(UInt8(ascii: ",")) }
      guard let element else {
        literal.append(contentsOf: "NULL".utf8)
        continue
      }
      literal.append(UInt8(ascii: "\""))
      for byte in element.utf8 {
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
          literal.append(UInt8(ascii: "\\"))
        }
        literal.append(byte)
      }
      literal.append(UInt8(ascii: "\""))
    }
    literal.append(UInt8(ascii: "}"))
    return String(decoding: literal, as: UTF8.self)
  }
}

extension PostgresValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .text(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
  package init(nilLiteral: ()) { self = .null }
}
