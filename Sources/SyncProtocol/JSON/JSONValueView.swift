/// A value seen in place; valid as long as the bytes under its cursor.
package enum JSONValueView {
  case null
  case boolean(Bool)
  case number(JSONNumberView)
  case text(JSONTextView)
  /// An array or object, as its text.
  case container(UnsafeBufferPointer<UInt8>)
}

/// A string seen in place: the bytes between its quotes, which may contain escapes.
package struct JSONTextView {
  package let raw: UnsafeBufferPointer<UInt8>
  package let hasEscapes: Bool

  /// The text, with escapes resolved. Lone surrogates and invalid UTF-8 become U+FFFD.
  package var string: String {
    guard hasEscapes else { return String(decoding: raw, as: UTF8.self) }
    var resolved: [UInt8] = []
    appendResolved(to: &resolved)
    return String(decoding: resolved, as: UTF8.self)
  }

  /// Whether the text is exactly `word`, which must be ASCII without quotes or backslashes.
  package func equals(_ word: StaticString) -> Bool {
    guard !hasEscapes else { return string == "\(word)" }
    guard raw.count == word.utf8CodeUnitCount else { return false }
    for index in 0..<raw.count where raw[index] != word.utf8Start[index] { return false }
    return true
  }

  /// Appends the UTF-8 bytes of the text with its escapes resolved.
  ///
  /// The view must come from a cursor, which has checked the escapes.
  package func appendResolved(to output: inout [UInt8]) {
    output.reserveCapacity(output.count + raw.count)
    var index = 0
    while index < raw.count {
      let byte = raw[index]
      guard byte == UInt8(ascii: "\\"), index + 1 < raw.count else {
        output.append(byte)
        index += 1
        continue
      }
      let kind = raw[index + 1]
      index += 2
      switch kind {
      case UInt8(ascii: "b"): output.append(0x08)
      case UInt8(ascii: "f"): output.append(0x0C)
      case UInt8(ascii: "n"): output.append(0x0A)
      case UInt8(ascii: "r"): output.append(0x0D)
      case UInt8(ascii: "t"): output.append(0x09)
      case UInt8(ascii: "u"): index = appendUnit(at: index, to: &output)
      default: output.append(kind)
      }
    }
  }

  /// Appends the scalar whose four digits begin at `index`, taking a following low surrogate with it; returns the index
  /// after it.
  private func appendUnit(at index: Int, to output: inout [UInt8]) -> Int {
    guard let unit = unit(at: index) else { return raw.count }
    if unit >> 10 == 0x36, index + 6 <= raw.count, raw[index + 4] == UInt8(ascii: "\\"),
      raw[index + 5] == UInt8(ascii: "u"), let low = self.unit(at: index + 6), low >> 10 == 0x37
    {
      append(0x10000 + (unit & 0x3FF) << 10 + low & 0x3FF, to: &output)
      return index + 10
    }
    append(unit, to: &output)
    return index + 4
  }

  private func unit(at index: Int) -> UInt32? {
    guard index + 4 <= raw.count else { return nil }
    var unit: UInt32 = 0
    for offset in 0..<4 {
      guard let digit = hexadecimalDigit(raw[index + offset]) else { return nil }
      unit = unit << 4 | UInt32(digit)
    }
    return unit
  }

  private func append(_ value: UInt32, to output: inout [UInt8]) {
    let scalar = Unicode.Scalar(value) ?? "\u{FFFD}"
    output.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
  }
}

/// A number seen in place.
package struct JSONNumberView {
  package let raw: UnsafeBufferPointer<UInt8>
  /// Whether it is written without a fraction and exponent.
  package let isInteger: Bool

  /// The value, if it is an integer of 64 bits.
  package var int64: Int64? {
    guard isInteger, !raw.isEmpty else { return nil }
    let negative = raw[0] == UInt8(ascii: "-")
    var value: Int64 = 0
    for index in (negative ? 1 : 0)..<raw.count {
      let digit = Int64(raw[index] &- UInt8(ascii: "0"))
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (next, carry) =
        negative
        ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      if overflow || carry { return nil }
      value = next
    }
    return value
  }

  /// The nearest double; infinite when it is out of range.
  package var double: Double {
    if let value = int64, value.magnitude <= 1 << 53 { return Double(value) }
    return Double(String(decoding: raw, as: UTF8.self)) ?? .nan
  }
}
