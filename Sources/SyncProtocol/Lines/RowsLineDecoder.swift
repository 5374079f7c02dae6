/// Walks over a line of rows and shows each operation in place.
package enum RowsLineDecoder {
  /// What a line of rows says besides its operations.
  package struct Header: Sendable, Equatable {
    package var bucket: BucketName
    package var operations: Int
    package var next: SyncPosition
    package var more: Bool
  }

  /// One operation seen in place; valid only inside the call that shows it.
  package struct Operation {
    package let table: JSONTextView
    package let objectID: JSONTextView
    package let stamp: JSONTextView
    package let id: Int64
    package let checksum: UInt64
    /// The JSON object's text; nil = the row has left the bucket.
    package let data: UnsafeBufferPointer<UInt8>?
    /// nil = "".
    package let subkey: JSONTextView?
  }

  /// The bucket that a line of rows names before its operations.
  package static func bucket(of line: [UInt8]) throws(ProtocolError) -> BucketName {
    try line.withUnsafeBufferPointer { (line) throws(ProtocolError) in
      var cursor = try beginLine(line)
      var first = true
      while try cursor.nextElement(first: &first, close: UInt8(ascii: "}")) {
        let key = try cursor.readString()
        try cursor.expect(UInt8(ascii: ":"))
        if key.equals("bucket") { return BucketName(try cursor.readString().string) }
        if key.equals("ops") { break }
        try cursor.skipValue()
      }
      throw cursor.wrongField("rows.bucket", "is missing")
    }
  }

  private static func beginLine(
    _ line: UnsafeBufferPointer<UInt8>
  ) throws(ProtocolError) -> JSONCursor {
    var cursor = JSONCursor(line, direction: .line)
    try cursor.expect(UInt8(ascii: "{"))
    guard try cursor.readString().equals("rows") else {
      throw cursor.wrongField("rows", "is missing")
    }
    try cursor.expect(UInt8(ascii: ":"))
    try cursor.expect(UInt8(ascii: "{"))
    return cursor
  }

  /// Checks the whole line and calls `body` with each operation in order.
  ///
  /// `bucket` must stand before `ops` in the line, as it does in every line that `RowsLineEncoder` writes.
  package static func decode(
    _ line: UnsafeBufferPointer<UInt8>, _ body: (Operation) throws -> Void
  ) throws -> Header {
    var cursor = try beginLine(line)
    var bucket: String?
    var operations = 0
    var next: SyncPosition?
    var more: Bool?
    var first = true
    while try cursor.nextElement(first: &first, close: UInt8(ascii: "}")) {
      let key = try cursor.readString()
      try cursor.expect(UInt8(ascii: ":"))
      if key.equals("bucket") {
        bucket = try cursor.readString().string
      } else if key.equals("ops") {
        operations += try decodeOperations(&cursor, body)
      } else if key.equals("next") {
        next = try SyncPosition(parsing: try cursor.readString().string, in: .line)
      } else if key.equals("more") {
        more = try cursor.readBool()
      } else {
        try cursor.skipValue()
      }
    }
    try cursor.expect(UInt8(ascii: "}"))
    try cursor.expectEnd()
    return Header(
      bucket: BucketName(try cursor.require(bucket, "rows.bucket")), operations: operations,
      next: try cursor.require(next, "rows.next"), more: try cursor.require(more, "rows.more"))
  }

  package static func decode(
    _ line: [UInt8], _ body: (Operation) throws -> Void
  ) throws -> Header {
    try line.withUnsafeBufferPointer { try decode($0, body) }
  }

  private static func decodeOperations(
    _ cursor: inout JSONCursor, _ body: (Operation) throws -> Void
  ) throws -> Int {
    try cursor.expect(UInt8(ascii: "["))
    var count = 0
    var first = true
    while try cursor.nextElement(first: &first, close: UInt8(ascii: "]")) {
      try body(try decodeOperation(&cursor))
      count += 1
    }
    return count
  }

  @inline(__always)
  private static func decodeOperation(
    _ cursor: inout JSONCursor
  ) throws(ProtocolError) -> Operation {
    try cursor.expect(UInt8(ascii: "["))
    let table = try cursor.readString()
    try cursor.expect(UInt8(ascii: ","))
    let objectID = try cursor.readString()
    try cursor.expect(UInt8(ascii: ","))
    let stamp = try cursor.readString()
    try cursor.expect(UInt8(ascii: ","))
    let id = try cursor.readInt64("rows.ops.id")
    try cursor.expect(UInt8(ascii: ","))
    let checksum = try cursor.readHexadecimal("rows.ops.checksum")
    try cursor.expect(UInt8(ascii: ","))
    var data: UnsafeBufferPointer<UInt8>?
    if try !cursor.consumeNull() {
      guard cursor.peek() == UInt8(ascii: "{") else {
        throw cursor.wrongField("rows.ops.data", "must be an object or null")
      }
      let begin = cursor.position
      try cursor.skipValue()
      data = UnsafeBufferPointer(rebasing: cursor.bytes[begin..<cursor.position])
    }
    var subkey: JSONTextView?
    if cursor.consume(UInt8(ascii: ",")) { subkey = try cursor.readString() }
    // Anything after the seventh element belongs to a later version.
    while cursor.consume(UInt8(ascii: ",")) { try cursor.skipValue() }
    try cursor.expect(UInt8(ascii: "]"))
    return Operation(
      table: table, objectID: objectID, stamp: stamp, id: id, checksum: checksum, data: data,
      subkey: subkey)
  }
}
