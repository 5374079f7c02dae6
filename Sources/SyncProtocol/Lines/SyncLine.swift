/// One line of a stream, read. A line of rows is only located: `RowsLineDecoder` walks over its rows.
package enum SyncLine: Sendable, Equatable {
  case schema(PublishedSchema)
  case checkpoint(CheckpointLine)
  case rows
  case complete(CompleteLine)
  case keepalive(KeepaliveLine)
  case error(ErrorBody)
  /// A kind of line that this version does not know; to be passed over.
  case unknown(String)

  package init(decoding line: [UInt8]) throws(ProtocolError) {
    self = try line.withUnsafeBufferPointer { (bytes) throws(ProtocolError) in
      try SyncLine(decoding: bytes)
    }
  }

  package init(decoding line: UnsafeBufferPointer<UInt8>) throws(ProtocolError) {
    var cursor = JSONCursor(line, direction: .line)
    try cursor.expect(UInt8(ascii: "{"))
    let key = try cursor.readString().string
    try cursor.expect(UInt8(ascii: ":"))
    switch key {
    case "rows":
      self = .rows
      return
    case "schema": self = .schema(try PublishedSchema(reading: &cursor))
    case "checkpoint": self = .checkpoint(try CheckpointLine(reading: &cursor))
    case "complete": self = .complete(try CompleteLine(reading: &cursor))
    case "keepalive": self = .keepalive(try KeepaliveLine(reading: &cursor))
    case "error": self = .error(try ErrorBody(reading: &cursor))
    default:
      try cursor.skipValue()
      self = .unknown(key)
    }
    try cursor.expect(UInt8(ascii: "}"))
    try cursor.expectEnd()
  }
}

/// Everything announced has been sent: of all buckets, or of those up to a priority.
package struct CompleteLine: Sendable, Equatable {
  package var tick: Int64
  /// nil = of every bucket.
  package var priority: Int?

  package init(tick: Int64, priority: Int? = nil) {
    self.tick = tick
    self.priority = priority
  }

  package func encodedLine() -> [UInt8] {
    var writer = JSONWriter(reserving: 64)
    writer.append(literal: "{\"complete\":{\"tick\":")
    writer.append(tick)
    writer.append(literal: ",\"priority\":")
    if let priority { writer.append(Int64(priority)) } else { writer.append(literal: "null") }
    writer.append(literal: "}}\n")
    return writer.take()
  }

  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var tick: Int64?
    var priority: Int?
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "tick": tick = try cursor.readInt64("complete.tick")
      case "priority":
        if try !cursor.consumeNull() {
          priority = Int(clamping: try cursor.readInt64("complete.priority"))
        }
      default: try cursor.skipValue()
      }
    }
    self.init(tick: try cursor.require(tick, "complete.tick"), priority: priority)
  }
}

/// The stream is alive and its token is good for so many seconds; 0 = it has expired and the stream ends.
package struct KeepaliveLine: Sendable, Equatable {
  package var tokenExpiresIn: Int64

  package init(tokenExpiresIn: Int64) { self.tokenExpiresIn = tokenExpiresIn }

  package func encodedLine() -> [UInt8] {
    var writer = JSONWriter(reserving: 48)
    writer.append(literal: "{\"keepalive\":{\"token_expires_in\":")
    writer.append(tokenExpiresIn)
    writer.append(literal: "}}\n")
    return writer.take()
  }

  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var expires: Int64?
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      if key == "token_expires_in" {
        expires = try cursor.readInt64("keepalive.token_expires_in")
      } else {
        try cursor.skipValue()
      }
    }
    self.init(tokenExpiresIn: try cursor.require(expires, "keepalive.token_expires_in"))
  }
}
