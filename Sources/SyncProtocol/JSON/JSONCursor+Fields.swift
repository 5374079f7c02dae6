extension JSONCursor {
  /// Reads an object; `body` must read each key's value.
  package mutating func readObject(
    _ body: (_ key: String, _ cursor: inout JSONCursor) throws(ProtocolError) -> Void
  ) throws(ProtocolError) {
    try expect(UInt8(ascii: "{"))
    var first = true
    while try nextElement(first: &first, close: UInt8(ascii: "}")) {
      let key = try readString().string
      try expect(UInt8(ascii: ":"))
      try body(key, &self)
    }
  }

  /// Reads an array; `body` must read each element.
  package mutating func readArray(
    _ body: (_ cursor: inout JSONCursor) throws(ProtocolError) -> Void
  ) throws(ProtocolError) {
    try expect(UInt8(ascii: "["))
    var first = true
    while try nextElement(first: &first, close: UInt8(ascii: "]")) { try body(&self) }
  }

  /// Reads an integer of 64 bits.
  package mutating func readInt64(_ field: String) throws(ProtocolError) -> Int64 {
    guard let value = try readNumber().int64 else {
      throw wrongField(field, "must be an integer of 64 bits")
    }
    return value
  }

  /// Reads `true` or `false`.
  package mutating func readBool() throws(ProtocolError) -> Bool {
    if peek() == UInt8(ascii: "t") {
      try expectWord("true")
      return true
    }
    try expectWord("false")
    return false
  }

  /// Reads 1 to 16 hexadecimal digits in a string.
  package mutating func readHexadecimal(_ field: String) throws(ProtocolError) -> UInt64 {
    let text = try readString()
    var value: UInt64 = 0
    guard (1...16).contains(text.raw.count) else {
      throw wrongField(field, "must be up to 16 hexadecimal digits")
    }
    for index in 0..<text.raw.count {
      guard let digit = hexadecimalDigit(text.raw[index]) else {
        throw wrongField(field, "must be up to 16 hexadecimal digits")
      }
      value = value << 4 | UInt64(digit)
    }
    return value
  }

  /// Consumes `null` if it comes next.
  package mutating func consumeNull() throws(ProtocolError) -> Bool {
    guard peek() == UInt8(ascii: "n") else { return false }
    try expectWord("null")
    return true
  }

  package func require<Value>(
    _ value: Value?, _ field: String
  ) throws(ProtocolError) -> Value {
    guard let value else { throw wrongField(field, "is missing") }
    return value
  }

  package func wrongField(_ field: String, _ problem: String) -> ProtocolError {
    direction.error(.field, "\(field) \(problem).")
  }
}
