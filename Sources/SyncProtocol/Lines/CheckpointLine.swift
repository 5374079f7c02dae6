/// What a replica will hold when the rows that follow have arrived: the state of its buckets at one tick.
///
/// ```
/// {"checkpoint":{"tick":912,"stamp":"…","id":184480,"full":true,
///   "buckets":[{"name":"lists|0[\"a1\"]","priority":3,"count":120,"digest":"…","start":184000,"reset":false,
///     "subscriptions":[0]}],
///   "removed":[],"acks":[],
///   "streams":[{"name":"lists","is_default":false,"errors":[]}]}}
/// ```
///
/// `subscriptions` are the places, in the request, of those that lead to the bucket; it is left out when
/// there are none. `streams` says what came of each stream that the client has or asked for; it is left
/// out when there are none and when nothing changed since the checkpoint before.
package struct CheckpointLine: Sendable, Equatable {
  package var tick: Int64
  package var stamp: String
  /// The tick's boundary: the id up to which a bucket is complete.
  package var id: Int64
  /// Whether `buckets` is all of them, or only those that are new or changed since the checkpoint before.
  package var full: Bool
  package var buckets: [BucketState]
  /// Buckets that are no longer granted; only when not `full`.
  package var removed: [BucketName]
  /// Client transactions that this checkpoint contains.
  package var acks: [String]
  /// What came of the client's streams; nil when nothing changed, and in a full line when there are none.
  package var streams: [StreamState]?

  package init(
    tick: Int64, stamp: String, id: Int64, full: Bool, buckets: [BucketState],
    removed: [BucketName] = [], acks: [String] = [], streams: [StreamState]? = nil
  ) {
    self.tick = tick
    self.stamp = stamp
    self.id = id
    self.full = full
    self.buckets = buckets
    self.removed = removed
    self.acks = acks
    self.streams = streams
  }
}

/// One bucket in a checkpoint.
package struct BucketState: Sendable, Equatable {
  package var name: BucketName
  package var priority: Int
  /// Live entries at this tick.
  package var count: Int64
  /// XOR of the checksums of the live entries at this tick.
  package var digest: UInt64
  /// The boundary at which this client's copy began.
  package var start: Int64
  /// Whether the client must drop what it holds of the bucket when this checkpoint completes, and read from nothing.
  package var reset: Bool
  /// The places, in the request, of the subscriptions that lead to the bucket.
  package var subscriptions: [Int]

  package init(
    name: BucketName, priority: Int, count: Int64, digest: UInt64, start: Int64, reset: Bool,
    subscriptions: [Int] = []
  ) {
    self.name = name
    self.priority = priority
    self.count = count
    self.digest = digest
    self.start = start
    self.reset = reset
    self.subscriptions = subscriptions
  }
}

extension CheckpointLine {
  /// The line `{"checkpoint":…}`.
  package func encodedLine() -> [UInt8] {
    var writer = JSONWriter(reserving: 160 + 160 * buckets.count)
    writer.append(literal: "{\"checkpoint\":{\"tick\":")
    writer.append(tick)
    writer.append(literal: ",\"stamp\":")
    writer.append(string: stamp)
    writer.append(literal: ",\"id\":")
    writer.append(id)
    writer.append(literal: ",\"full\":")
    writer.append(full)
    writer.append(literal: ",\"buckets\":[")
    for (index, bucket) in buckets.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      bucket.encode(to: &writer)
    }
    writer.append(literal: "],\"removed\":[")
    for (index, name) in removed.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      writer.append(string: name.text)
    }
    writer.append(literal: "],\"acks\":[")
    for (index, ack) in acks.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      writer.append(string: ack)
    }
    writer.append(UInt8(ascii: "]"))
    if let streams {
      writer.append(literal: ",\"streams\":[")
      for (index, stream) in streams.enumerated() {
        if index > 0 { writer.append(UInt8(ascii: ",")) }
        stream.encode(to: &writer)
      }
      writer.append(UInt8(ascii: "]"))
    }
    writer.append(literal: "}}\n")
    return writer.take()
  }

  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var tick: Int64?
    var stamp: String?
    var id: Int64?
    var full: Bool?
    var buckets: [BucketState] = []
    var removed: [BucketName] = []
    var acks: [String] = []
    var streams: [StreamState]?
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "tick": tick = try cursor.readInt64("checkpoint.tick")
      case "stamp": stamp = try cursor.readString().string
      case "id": id = try cursor.readInt64("checkpoint.id")
      case "full": full = try cursor.readBool()
      case "buckets":
        try cursor.readArray { (cursor) throws(ProtocolError) in
          buckets.append(try BucketState(reading: &cursor))
        }
      case "removed":
        try cursor.readArray { (cursor) throws(ProtocolError) in
          removed.append(BucketName(try cursor.readString().string))
        }
      case "acks":
        try cursor.readArray { (cursor) throws(ProtocolError) in
          acks.append(try cursor.readString().string)
        }
      case "streams":
        var states: [StreamState] = []
        try cursor.readArray { (cursor) throws(ProtocolError) in
          states.append(try StreamState(reading: &cursor))
        }
        streams = states
      default: try cursor.skipValue()
      }
    }
    let stampText = try cursor.require(stamp, "checkpoint.stamp")
    guard SyncPosition.isStamp(stampText) else {
      throw cursor.wrongField("checkpoint.stamp", "is not a stamp")
    }
    self.init(
      tick: try cursor.require(tick, "checkpoint.tick"), stamp: stampText,
      id: try cursor.require(id, "checkpoint.id"),
      full: try cursor.require(full, "checkpoint.full"),
      buckets: buckets, removed: removed, acks: acks, streams: streams)
  }
}

extension BucketState {
  func encode(to writer: inout JSONWriter) {
    writer.append(literal: "{\"name\":")
    writer.append(string: name.text)
    writer.append(literal: ",\"priority\":")
    writer.append(Int64(priority))
    writer.append(literal: ",\"count\":")
    writer.append(count)
    writer.append(literal: ",\"digest\":")
    writer.append(hexadecimal: digest)
    writer.append(literal: ",\"start\":")
    writer.append(start)
    writer.append(literal: ",\"reset\":")
    writer.append(reset)
    if !subscriptions.isEmpty {
      writer.append(literal: ",\"subscriptions\":[")
      for (index, place) in subscriptions.enumerated() {
        if index > 0 { writer.append(UInt8(ascii: ",")) }
        writer.append(Int64(place))
      }
      writer.append(UInt8(ascii: "]"))
    }
    writer.append(UInt8(ascii: "}"))
  }

  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var name: String?
    var priority: Int64 = 3
    var count: Int64?
    var digest: UInt64?
    var start: Int64 = 0
    var reset = false
    var subscriptions: [Int] = []
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "name": name = try cursor.readString().string
      case "priority": priority = try cursor.readInt64("checkpoint.buckets.priority")
      case "count": count = try cursor.readInt64("checkpoint.buckets.count")
      case "digest": digest = try cursor.readHexadecimal("checkpoint.buckets.digest")
      case "start": start = try cursor.readInt64("checkpoint.buckets.start")
      case "reset": reset = try cursor.readBool()
      case "subscriptions":
        try cursor.readArray { (cursor) throws(ProtocolError) in
          subscriptions.append(
            Int(clamping: try cursor.readInt64("checkpoint.buckets.subscriptions")))
        }
      default: try cursor.skipValue()
      }
    }
    self.init(
      name: BucketName(try cursor.require(name, "checkpoint.buckets.name")),
      priority: Int(clamping: priority),
      count: try cursor.require(count, "checkpoint.buckets.count"),
      digest: try cursor.require(digest, "checkpoint.buckets.digest"), start: start, reset: reset,
      subscriptions: subscriptions)
  }
}
