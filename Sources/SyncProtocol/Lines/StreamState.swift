/// What came of a client's subscriptions to one stream; part of a checkpoint line.
///
/// `{"name":"lists","is_default":true,"errors":[{"subscription":0,"code":"…","message":"…"}]}`
package struct StreamState: Sendable, Equatable {
  /// The stream's name, or the name that was asked for when there is no such stream.
  package var name: String
  /// Whether the client has the stream without asking.
  package var isDefault: Bool
  package var errors: [SubscriptionError]

  package init(name: String, isDefault: Bool, errors: [SubscriptionError] = []) {
    self.name = name
    self.isDefault = isDefault
    self.errors = errors
  }
}

/// Why a subscription gives nothing, or not everything.
package struct SubscriptionError: Sendable, Hashable {
  /// The place in the request's `subscriptions`; nil for what a client has without asking.
  package var subscription: Int?
  package var code: String
  package var message: String

  package init(subscription: Int?, code: String, message: String) {
    self.subscription = subscription
    self.code = code
    self.message = message
  }
}

extension StreamState {
  func encode(to writer: inout JSONWriter) {
    writer.append(literal: "{\"name\":")
    writer.append(string: name)
    writer.append(literal: ",\"is_default\":")
    writer.append(isDefault)
    writer.append(literal: ",\"errors\":[")
    for (index, error) in errors.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      error.encode(to: &writer)
    }
    writer.append(literal: "]}")
  }

  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var name: String?
    var isDefault = false
    var errors: [SubscriptionError] = []
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "name": name = try cursor.readString().string
      case "is_default": isDefault = try cursor.readBool()
      case "errors":
        try cursor.readArray { (cursor) throws(ProtocolError) in
          errors.append(try SubscriptionError(reading: &cursor))
        }
      default: try cursor.skipValue()
      }
    }
    self.init(
      name: try cursor.require(name, "checkpoint.streams.name"), isDefault: isDefault,
      errors: errors)
  }
}

extension SubscriptionError {
  func encode(to writer: inout JSONWriter) {
    writer.append(literal: "{\"subscription\":")
    if let subscription {
      writer.append(Int64(subscription))
    } else {
      writer.append(literal: "null")
    }
    writer.append(literal: ",\"code\":")
    writer.append(string: code)
    writer.append(literal: ",\"message\":")
    writer.append(string: message)
    writer.append(literal: "}")
  }

  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var subscription: Int?
    var code: String?
    var message: String?
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "subscription":
        if try !cursor.consumeNull() {
          subscription = Int(
            clamping: try cursor.readInt64("checkpoint.streams.errors.subscription"))
        }
      case "code": code = try cursor.readString().string
      case "message": message = try cursor.readString().string
      default: try cursor.skipValue()
      }
    }
    self.init(
      subscription: subscription,
      code: try cursor.require(code, "checkpoint.streams.errors.code"),
      message: try cursor.require(message, "checkpoint.streams.errors.message"))
  }
}
