/// What a client asks of `POST /v1/stream`.
package struct StreamRequest: Sendable, Equatable {
  /// The replica's own name, stable over its life; nil for a reader that keeps nothing.
  package var clientID: String?
  /// The hash of the schema that the client has; nil if it has none.
  package var schema: String?
  /// Where the client stands in the buckets it holds.
  package var buckets: [BucketName: SyncPosition]
  /// The client's parameters: the text of a JSON object.
  package var parametersJSON: String
  package var subscriptions: [StreamSubscription]
  /// Whether streams that subscribe themselves are wanted.
  package var includeDefaults: Bool

  package init(
    clientID: String? = nil, schema: String? = nil, buckets: [BucketName: SyncPosition] = [:],
    parametersJSON: String = "{}", subscriptions: [StreamSubscription] = [],
    includeDefaults: Bool = true
  ) {
    self.clientID = clientID
    self.schema = schema
    self.buckets = buckets
    self.parametersJSON = parametersJSON
    self.subscriptions = subscriptions
    self.includeDefaults = includeDefaults
  }

  /// What a request may contain at most.
  package struct Limits: Sendable {
    package var bytes: Int = 1 << 20
    package var depth: Int = 32
    /// Elements of arrays and objects inside the parameters, all together.
    package var elements: Int = 10_000
    package var parameterBytes: Int = 64 << 10
    package var buckets: Int = 2000
    package var subscriptions: Int = 1000
    /// Bytes of a name or hash.
    package var nameBytes: Int = 8192
    package var clientIDBytes: Int = 200

    package init() {}
  }
}

/// One stream that the client subscribes to.
package struct StreamSubscription: Sendable, Equatable {
  package var stream: String
  /// The text of a JSON object.
  package var parametersJSON: String
  package var overridePriority: Int?

  package init(stream: String, parametersJSON: String = "{}", overridePriority: Int? = nil) {
    self.stream = stream
    self.parametersJSON = parametersJSON
    self.overridePriority = overridePriority
  }
}

extension StreamRequest {
  /// The request's body. The parameter texts must be JSON objects.
  package func encoded() -> [UInt8] {
    var writer = JSONWriter(reserving: 256 + 128 * buckets.count)
    writer.append(literal: "{\"client_id\":")
    writer.append(optional: clientID)
    writer.append(literal: ",\"schema\":")
    writer.append(optional: schema)
    writer.append(literal: ",\"buckets\":{")
    for (index, name) in buckets.keys.sorted().enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      writer.append(string: name.text)
      writer.append(UInt8(ascii: ":"))
      writer.append(string: buckets[name]?.text ?? "")
    }
    writer.append(literal: "},\"parameters\":")
    writer.append(json: parametersJSON)
    writer.append(literal: ",\"subscriptions\":")
    StreamSubscription.encode(subscriptions, to: &writer)
    writer.append(literal: ",\"include_defaults\":")
    writer.append(includeDefaults)
    writer.append(UInt8(ascii: "}"))
    return writer.take()
  }
}

extension StreamSubscription {
  /// `[{"stream":"…","parameters":{…},"override_priority":1}]`
  package static func json(_ subscriptions: [StreamSubscription]) -> String {
    var writer = JSONWriter(reserving: 64)
    encode(subscriptions, to: &writer)
    return String(decoding: writer.take(), as: UTF8.self)
  }

  fileprivate static func encode(
    _ subscriptions: [StreamSubscription], to writer: inout JSONWriter
  ) {
    writer.append(UInt8(ascii: "["))
    for (index, subscription) in subscriptions.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      writer.append(literal: "{\"stream\":")
      writer.append(string: subscription.stream)
      writer.append(literal: ",\"parameters\":")
      writer.append(json: subscription.parametersJSON)
      if let priority = subscription.overridePriority {
        writer.append(literal: ",\"override_priority\":")
        writer.append(Int64(priority))
      }
      writer.append(UInt8(ascii: "}"))
    }
    writer.append(UInt8(ascii: "]"))
  }
}

extension JSONWriter {
  fileprivate mutating func append(optional text: String?) {
    if let text { append(string: text) } else { append(literal: "null") }
  }
}

extension StreamRequest {
  /// Whether `text` is a JSON object that a gateway would take as parameters.
  package static func isObject(_ text: String) -> Bool {
    var copy = text
    return copy.withUTF8 { bytes in
      var cursor = JSONCursor(bytes, direction: .request)
      cursor.depthLimit = Limits().depth
      cursor.elementsLeft = Limits().elements
      guard cursor.peek() == UInt8(ascii: "{") else { return false }
      do {
        try cursor.skipValue()
        try cursor.expectEnd()
        return true
      } catch {
        return false
      }
    }
  }
}
