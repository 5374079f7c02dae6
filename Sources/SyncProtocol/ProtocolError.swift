/// Something that crossed the wire, or was about to, and does not follow the protocol.
///
/// `code` is stable and starts with `SLUICE_REQUEST_` for what a client sent and with `SLUICE_LINE_` for what a gateway
/// sent. The message names the field and the place, never the value found there.
public struct ProtocolError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The stable code, such as `SLUICE_REQUEST_JSON`.
  public let code: String
  /// A sentence for a person.
  public let message: String
  /// What to do about it, if there is something to say.
  public let hint: String?

  public init(code: String, message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  public var description: String { "\(code): \(message)" }
}

/// Which side's bytes are being read: decides the family of error codes and how strict strings are.
package enum WireDirection: Sendable {
  /// A client's request. Strings must be storable in PostgreSQL: no U+0000 and no lone surrogates.
  case request
  /// A gateway's line.
  case line

  var codePrefix: String {
    switch self {
    case .request: "SLUICE_REQUEST_"
    case .line: "SLUICE_LINE_"
    }
  }

  /// The error for `fault` in this direction.
  package func error(_ fault: WireFault, _ message: String, hint: String? = nil) -> ProtocolError {
    ProtocolError(code: codePrefix + fault.rawValue, message: message, hint: hint)
  }
}

/// The kinds of fault; each is the last word of an error code.
package enum WireFault: String, Sendable {
  /// Not JSON by RFC 8259.
  case json = "JSON"
  /// Not UTF-8.
  case encoding = "UTF8"
  /// U+0000 in a string.
  case nul = "NUL"
  /// Half a surrogate pair in a string.
  case surrogate = "SURROGATE"
  /// Nested too deep.
  case depth = "DEPTH"
  /// Too many elements or too many bytes.
  case size = "SIZE"
  /// A position that no gateway can have issued.
  case position = "POSITION"
  /// A field that is missing, given twice, or of the wrong type.
  case field = "FIELD"
  /// A number outside what can be stored.
  case number = "NUMBER"
}
