import SyncProtocol

/// A value that a stream is asked with.
public enum JSONValue: Sendable, Hashable {
  case null
  case boolean(Bool)
  case integer(Int64)
  /// Written as null when it is not finite, which no JSON number is.
  case real(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  /// JSON on one line, with the members of objects in the order of their names: equal values have equal texts.
  public var text: String {
    var writer = JSONWriter()
    encode(to: &writer)
    return String(decoding: writer.take(), as: UTF8.self)
  }

  private func encode(to writer: inout JSONWriter) {
    switch self {
    case .null: writer.append(literal: "null")
    case .boolean(let value): writer.append(value)
    case .integer(let value): writer.append(value)
    case .real(let value): writer.append(json: value.isFinite ? value.description : "null")
    case .string(let value): writer.append(string: value)
    case .array(let elements):
      writer.append(literal: "[")
      for (index, element) in elements.enumerated() {
        if index > 0 { writer.append(literal: ",") }
        element.encode(to: &writer)
      }
      writer.append(literal: "]")
    case .object(let members):
      writer.append(literal: "{")
      for (index, name) in members.keys.sorted().enumerated() {
        if index > 0 { writer.append(literal: ",") }
        writer.append(string: name)
        writer.append(literal: ":")
        (members[name] ?? .null).encode(to: &writer)
      }
      writer.append(literal: "}")
    }
  }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self = .null }
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(floatLiteral value: Double) { self = .real(value) }
  public init(stringLiteral value: String) { self = .string(value) }
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
  }
}
