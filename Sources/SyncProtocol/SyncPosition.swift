/// Where a copy of a bucket stands: everything up to entry `id`, begun at the boundary `start`.
///
/// Written `<stamp>,<id>,<start>` in a request, and `<stamp>,<id>` where the start is known from elsewhere. The stamp is
/// always `YYYY-MM-DDTHH:MM:SS.ffffffZ`, so that positions compare as text and can be bound as a timestamp.
package struct SyncPosition: Sendable, Equatable {
  package var stamp: String
  package var id: Int64
  package var start: Int64

  package init(stamp: String, id: Int64, start: Int64 = 0) {
    self.stamp = stamp
    self.id = id
    self.start = start
  }

  /// `<stamp>,<id>,<start>`
  package var text: String { "\(stamp),\(id),\(start)" }

  /// `<stamp>,<id>`
  package var shortText: String { "\(stamp),\(id)" }

  /// Reads `<stamp>,<id>,<start>`, or `<stamp>,<id>` with a start of 0.
  ///
  /// Strict: no spaces, signs or leading zeros, an existing calendar date, numbers that fit 63 bits.
  package init(parsing text: String, in direction: WireDirection = .request) throws(ProtocolError) {
    let parts = text.utf8.split(
      separator: UInt8(ascii: ","), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 2 || parts.count == 3,
      SyncPosition.isStamp(parts[0]),
      let id = SyncPosition.number(parts[1]),
      let start = parts.count == 3 ? SyncPosition.number(parts[2]) : 0
    else {
      throw direction.error(
        .position, "A position is not of the form <stamp>,<id>,<start>.",
        hint: "Send positions exactly as the gateway gave them, or leave the bucket out.")
    }
    self.init(stamp: String(Substring(parts[0])), id: id, start: start)
  }

  /// Whether `text` is a stamp: `YYYY-MM-DDTHH:MM:SS.ffffffZ` of an existing date.
  package static func isStamp(_ text: String) -> Bool { isStamp(text.utf8[...]) }

  private static func isStamp(_ bytes: Substring.UTF8View) -> Bool {
    guard bytes.count == 27 else { return false }
    var fields: [Int] = []
    var value = 0
    for (byte, form) in zip(bytes, "dddd-dd-ddTdd:dd:dd.ddddddZ".utf8) {
      if form == UInt8(ascii: "d") {
        guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return false }
        value = value * 10 + Int(byte - UInt8(ascii: "0"))
      } else {
        guard byte == form else { return false }
        fields.append(value)
        value = 0
      }
    }
    let (year, month, day) = (fields[0], fields[1], fields[2])
    guard year >= 1, (1...12).contains(month), fields[3] < 24, fields[4] < 60, fields[5] < 60 else {
      return false
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return (1...days[month - 1]).contains(day)
  }

  private static func number(_ bytes: Substring.UTF8View) -> Int64? {
    guard let first = bytes.first, bytes.count <= 19,
      first != UInt8(ascii: "0") || bytes.count == 1
    else { return nil }
    var value: Int64 = 0
    for byte in bytes {
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
      guard !overflow, !carry else { return nil }
      value = sum
    }
    return value
  }
}
