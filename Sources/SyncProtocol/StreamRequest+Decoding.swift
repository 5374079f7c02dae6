extension StreamRequest {
  /// Reads a request's body.
  ///
  /// Strict: whatever is accepted can be bound as PostgreSQL `jsonb` and text. Keys that this version does not know are
  /// passed over, keys given twice are refused.
  package init(decoding body: [UInt8], limits: Limits = Limits()) throws(ProtocolError) {
    let direction = WireDirection.request
    guard body.count <= limits.bytes else {
      throw direction.error(.size, "The request is longer than \(limits.bytes) bytes.")
    }
    guard String(validating: body, as: UTF8.self) != nil else {
      throw direction.error(.encoding, "The request is not UTF-8.")
    }
    self = try body.withUnsafeBufferPointer { (bytes) throws(ProtocolError) in
      var cursor = JSONCursor(bytes, direction: direction)
      cursor.depthLimit = limits.depth
      cursor.elementsLeft = limits.elements
      let request = try StreamRequest(reading: &cursor, limits: limits)
      try cursor.expectEnd()
      return request
    }
  }

  private init(reading cursor: inout JSONCursor, limits: Limits) throws(ProtocolError) {
    self.init()
    var seen: Set<String> = []
    var request = self
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      guard seen.insert(key).inserted, seen.count <= 64 else {
        throw cursor.wrongField(
          "A key of the request", "is given twice, or there are too many keys")
      }
      switch key {
      case "client_id":
        request.clientID = try cursor.readName("client_id", limit: limits.clientIDBytes)
      case "schema": request.schema = try cursor.readName("schema", limit: limits.nameBytes)
      case "buckets": request.buckets = try cursor.readBuckets(limits: limits)
      case "parameters":
        request.parametersJSON = try cursor.readParameters("parameters", limits: limits)
      case "subscriptions": request.subscriptions = try cursor.readSubscriptions(limits: limits)
      case "include_defaults": request.includeDefaults = try cursor.readFlag("include_defaults")
      default: try cursor.skipValue()
      }
    }
    self = request
  }
}

extension JSONCursor {
  /// A string of at most `limit` bytes and not empty, or null.
  fileprivate mutating func readName(
    _ field: String, limit: Int
  ) throws(ProtocolError) -> String? {
    if try consumeNull() { return nil }
    guard peek() == UInt8(ascii: "\"") else { throw wrongField(field, "must be a string") }
    let text = try readString().string
    guard !text.isEmpty, text.utf8.count <= limit else {
      throw wrongField(field, "must be 1 to \(limit) bytes long")
    }
    return text
  }

  fileprivate mutating func readFlag(_ field: String) throws(ProtocolError) -> Bool {
    guard peek() == UInt8(ascii: "t") || peek() == UInt8(ascii: "f") else {
      throw wrongField(field, "must be true or false")
    }
    return try readBool()
  }

  fileprivate mutating func readBuckets(
    limits: StreamRequest.Limits
  ) throws(ProtocolError) -> [BucketName: SyncPosition] {
    guard peek() == UInt8(ascii: "{") else { throw wrongField("buckets", "must be an object") }
    var buckets: [BucketName: SyncPosition] = [:]
    try readObject { (key, cursor) throws(ProtocolError) in
      guard !key.isEmpty, key.utf8.count <= limits.nameBytes else {
        throw cursor.wrongField(
          "A name in buckets", "must be 1 to \(limits.nameBytes) bytes long")
      }
      guard cursor.peek() == UInt8(ascii: "\"") else {
        throw cursor.wrongField("A position in buckets", "must be a string")
      }
      let position = try SyncPosition(parsing: try cursor.readString().string)
      guard buckets.updateValue(position, forKey: BucketName(key)) == nil else {
        throw cursor.wrongField("A bucket", "is given twice")
      }
      guard buckets.count <= limits.buckets else {
        throw cursor.direction.error(
          .size, "The request lists more than \(limits.buckets) buckets.")
      }
    }
    return buckets
  }

  /// An object's text, compacted to nothing but itself; null counts as `{}`.
  fileprivate mutating func readParameters(
    _ field: String, limits: StreamRequest.Limits
  ) throws(ProtocolError) -> String {
    if try consumeNull() { return "{}" }
    guard peek() == UInt8(ascii: "{") else { throw wrongField(field, "must be an object") }
    let start = position
    try skipValue()
    let text = UnsafeBufferPointer(rebasing: bytes[start..<position])
    guard text.count <= limits.parameterBytes else {
      throw direction.error(
        .size, "\(field) is longer than \(limits.parameterBytes) bytes.")
    }
    return String(decoding: text, as: UTF8.self)
  }

  fileprivate mutating func readSubscriptions(
    limits: StreamRequest.Limits
  ) throws(ProtocolError) -> [StreamSubscription] {
    if try consumeNull() { return [] }
    guard peek() == UInt8(ascii: "[") else { throw wrongField("subscriptions", "must be an array") }
    var subscriptions: [StreamSubscription] = []
    try readArray { (cursor) throws(ProtocolError) in
      guard subscriptions.count < limits.subscriptions else {
        throw cursor.direction.error(
          .size, "The request lists more than \(limits.subscriptions) subscriptions.")
      }
      subscriptions.append(try cursor.readSubscription(limits: limits))
    }
    return subscriptions
  }

  private mutating func readSubscription(
    limits: StreamRequest.Limits
  ) throws(ProtocolError) -> StreamSubscription {
    guard peek() == UInt8(ascii: "{") else {
      throw wrongField("A subscription", "must be an object")
    }
    var stream: String?
    var parameters = "{}"
    var priority: Int?
    var seen: Set<String> = []
    try readObject { (key, cursor) throws(ProtocolError) in
      guard seen.insert(key).inserted, seen.count <= 16 else {
        throw cursor.wrongField(
          "A key of a subscription", "is given twice, or there are too many keys")
      }
      switch key {
      case "stream":
        stream = try cursor.readName("subscriptions.stream", limit: limits.nameBytes)
      case "parameters":
        parameters = try cursor.readParameters("subscriptions.parameters", limits: limits)
      case "override_priority":
        if try !cursor.consumeNull() {
          let value = try cursor.readInt64("subscriptions.override_priority")
          guard (0...3).contains(value) else {
            throw cursor.wrongField("subscriptions.override_priority", "must be 0 to 3")
          }
          priority = Int(value)
        }
      default: try cursor.skipValue()
      }
    }
    return StreamSubscription(
      stream: try require(stream, "subscriptions.stream"), parametersJSON: parameters,
      overridePriority: priority)
  }
}
