/// An error as the gateway says it: in the body of a refusal, or as the last line of a stream.
public struct ErrorBody: Error, Sendable, Equatable, CustomStringConvertible {
  /// The stable code, such as `SLUICE_AUTH_EXPIRED`.
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

  public init(_ error: ProtocolError) {
    self.init(code: error.code, message: error.message, hint: error.hint)
  }

  public var description: String { "\(code): \(message)" }
}

extension ErrorBody {
  /// `{"error":{…}}` and a line end: a response body as well as a line.
  package func encodedLine() -> [UInt8] {
    var writer = JSONWriter(reserving: 256)
    writer.append(literal: "{\"error\":{\"code\":")
    writer.append(string: code)
    writer.append(literal: ",\"message\":")
    writer.append(string: message)
    if let hint {
      writer.append(literal: ",\"hint\":")
      writer.append(string: hint)
    }
    writer.append(literal: "}}\n")
    return writer.take()
  }

  /// Reads the body of a refusal; nil if it is not one of ours.
  package init?(body: [UInt8]) {
    guard case .error(let error)? = try? SyncLine(decoding: body) else { return nil }
    self = error
  }

  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var code: String?
    var message: String?
    var hint: String?
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "code": code = try cursor.readString().string
      case "message": message = try cursor.readString().string
      case "hint": hint = try cursor.consumeNull() ? nil : try cursor.readString().string
      default: try cursor.skipValue()
      }
    }
    self.init(
      code: try cursor.require(code, "error.code"),
      message: try cursor.require(message, "error.message"), hint: hint)
  }
}
