extension StreamSubscription {
  /// Reads a subscription as a person writes it: `NAME` or `NAME?key=value&key=value`.
  ///
  /// A value that is JSON counts as such, any other as a string: `lists?list=a1&limit=5&ids=[1,2]&code="5"`.
  /// `%` and two hexadecimal digits stand for a byte.
  package init(parsing text: String) throws(ProtocolError) {
    let parts = text.utf8.split(
      separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    let name = try Self.decoded(parts[0])
    guard !name.isEmpty else { throw Self.wrong("names no stream") }
    var writer = JSONWriter()
    var keys: Set<BucketName> = []
    let pairs = parts.count == 2 ? parts[1].split(separator: UInt8(ascii: "&")) : []
    for pair in pairs {
      let sides = pair.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard sides.count == 2 else { throw Self.wrong("has a parameter without a value") }
      let key = try Self.decoded(sides[0])
      guard keys.insert(BucketName(key)).inserted else {
        throw Self.wrong("gives a parameter twice")
      }
      writer.append(UInt8(ascii: keys.count == 1 ? "{" : ","))
      writer.append(string: key)
      writer.append(UInt8(ascii: ":"))
      let value = try Self.decoded(sides[1])
      if Self.isJSON(value) { writer.append(json: value) } else { writer.append(string: value) }
    }
    if keys.isEmpty { writer.append(UInt8(ascii: "{")) }
    writer.append(UInt8(ascii: "}"))
    self.init(
      stream: name, parametersJSON: String(decoding: writer.take(), as: UTF8.self))
  }

  private static func isJSON(_ text: String) -> Bool {
    var copy = text
    return copy.withUTF8 { bytes in
      var cursor = JSONCursor(bytes, direction: .request)
      cursor.depthLimit = StreamRequest.Limits().depth
      do {
        try cursor.skipValue()
        try cursor.expectEnd()
        return true
      } catch {
        return false
      }
    }
  }

  private static func decoded(_ text: Substring.UTF8View) throws(ProtocolError) -> String {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexadecimalDigit),
        let low = rest.popFirst().flatMap(hexadecimalDigit)
      else { throw wrong("has a % without two hexadecimal digits") }
      bytes.append(high << 4 | low)
    }
    guard let string = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
      throw wrong("is not UTF-8, or contains U+0000")
    }
    return string
  }

  private static func wrong(_ problem: String) -> ProtocolError {
    WireDirection.request.error(
      .field, "A subscription \(problem).", hint: "Write NAME or NAME?key=value&key=value.")
  }
}
