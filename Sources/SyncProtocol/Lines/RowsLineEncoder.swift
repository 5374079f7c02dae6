/// Writes a line of rows from bytes as PostgreSQL gives them, without making a string of any.
///
/// ```swift
/// var encoder = RowsLineEncoder(bucket: "by_list[\"a1\"]")
/// encoder.append(table: table, objectID: object, stamp: stamp, id: 184468, checksum: hex, data: json, subkey: nil)
/// let line = encoder.finish(next: SyncPosition(stamp: stamp, id: 184468), more: false)
/// ```
package struct RowsLineEncoder {
  /// A line of a stream, or the answer of `GET /v1/buckets/{name}/rows`, which is the same without the outer key.
  package enum Form: Sendable {
    case line
    case page
  }

  package private(set) var count = 0
  private var writer: JSONWriter
  private let form: Form

  package init(bucket: BucketName, form: Form = .line, reserving capacity: Int = 64 << 10) {
    self.form = form
    writer = JSONWriter(reserving: capacity)
    if form == .line { writer.append(literal: "{\"rows\":") }
    writer.append(literal: "{\"bucket\":")
    writer.append(string: bucket.text)
    writer.append(literal: ",\"ops\":[")
  }

  /// Bytes written so far.
  package var byteCount: Int { writer.bytes.count }

  /// Appends one operation; no `data` makes it a tombstone.
  ///
  /// `table`, `objectID` and `subkey` are UTF-8; `stamp` and `checksum` (up to 16 hexadecimal digits) need no escaping; `data`
  /// is a JSON object.
  package mutating func append(
    table: UnsafeRawBufferPointer, objectID: UnsafeRawBufferPointer, stamp: UnsafeRawBufferPointer,
    id: Int64, checksum: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer?,
    subkey: UnsafeRawBufferPointer? = nil
  ) {
    writer.append(count == 0 ? UInt8(ascii: "[") : UInt8(ascii: ","))
    if count > 0 { writer.append(UInt8(ascii: "[")) }
    count += 1
    writer.append(string: table)
    writer.append(UInt8(ascii: ","))
    writer.append(string: objectID)
    writer.append(literal: ",\"")
    writer.append(raw: stamp)
    writer.append(literal: "\",")
    writer.append(id)
    if let data {
      writer.append(literal: ",\"")
      writer.append(raw: checksum)
      writer.append(literal: "\",")
      writer.append(json: data)
    } else {
      writer.append(literal: ",\"0\",null")
    }
    if let subkey, subkey.count > 0 {
      writer.append(UInt8(ascii: ","))
      writer.append(string: subkey)
    }
    writer.append(UInt8(ascii: "]"))
  }

  /// Appends one operation from strings.
  package mutating func append(_ operation: RowOperation) {
    func bytes<Result>(
      _ text: String, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
      var copy = text
      return copy.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
    let digits = String(operation.checksum, radix: 16)
    let padded = String(repeating: "0", count: 16 - digits.count) + digits
    bytes(operation.table) { table in
      bytes(operation.objectID) { object in
        bytes(operation.stamp) { stamp in
          bytes(padded) { checksum in
            bytes(operation.subkey) { subkey in
              if let data = operation.data {
                bytes(data) { data in
                  append(
                    table: table, objectID: object, stamp: stamp, id: operation.id,
                    checksum: checksum, data: data, subkey: subkey)
                }
              } else {
                append(
                  table: table, objectID: object, stamp: stamp, id: operation.id,
                  checksum: checksum, data: nil, subkey: subkey)
              }
            }
          }
        }
      }
    }
  }

  /// Ends the line and gives its bytes. `next` is the position after the last operation; `more` tells whether the bucket has
  /// more to send in this checkpoint. The position carries its start only if that is not 0.
  package consuming func finish(next: SyncPosition, more: Bool) -> [UInt8] {
    writer.append(literal: "],\"next\":")
    writer.append(string: next.start == 0 ? next.shortText : next.text)
    writer.append(literal: ",\"more\":")
    writer.append(more)
    if form == .line { writer.append(UInt8(ascii: "}")) }
    writer.append(literal: "}\n")
    return writer.take()
  }
}

/// One operation on a row in a bucket, as values: for tests and for small lines.
package struct RowOperation: Sendable, Equatable {
  package var table: String
  package var objectID: String
  package var stamp: String
  package var id: Int64
  package var checksum: UInt64
  /// A JSON object; nil = the row has left the bucket.
  package var data: String?
  package var subkey: String

  package init(
    table: String, objectID: String, stamp: String, id: Int64, checksum: UInt64, data: String?,
    subkey: String = ""
  ) {
    self.table = table
    self.objectID = objectID
    self.stamp = stamp
    self.id = id
    self.checksum = checksum
    self.data = data
    self.subkey = subkey
  }
}
