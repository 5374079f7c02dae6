/// The path and the query of a request line, decoded strictly.
struct RequestTarget: Equatable {
  struct Parameter: Equatable {
    let name: String
    let value: String
  }

  let path: String
  let segments: [String]
  let query: [Parameter]

  /// Takes the origin form, and the absolute form without its authority.
  ///
  /// Refused: bytes that a URL may not hold, broken percent-encodings, an encoded NUL, text that is not
  /// UTF-8, an empty segment inside the path, and `.` or `..` as a segment in any encoding.
  init(_ raw: [UInt8]) throws(HTTPRefusal) {
    var raw = raw[...]
    for scheme in ["http://", "https://"] {
      let prefix = raw.prefix(scheme.utf8.count).map { $0 | 0x20 }
      guard prefix.elementsEqual(scheme.utf8.map { $0 | 0x20 }) else { continue }
      raw = raw.dropFirst(scheme.utf8.count).drop { $0 != UInt8(ascii: "/") }
    }
    guard raw.first == UInt8(ascii: "/") else {
      throw .badRequest("the request target is not a path")
    }
    guard raw.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
      throw .badRequest("the request target has a character that must be percent-encoded")
    }
    let mark = raw.firstIndex(of: UInt8(ascii: "?")) ?? raw.endIndex
    let path = raw[..<mark]
    self.path = String(decoding: path, as: UTF8.self)

    var segments: [String] = []
    let parts = path.dropFirst().split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    for (index, part) in parts.enumerated() where path.count > 1 {
      if part.isEmpty, index < parts.count - 1 {
        throw .badRequest("the path has an empty segment")
      }
      let segment = try Self.decode(part, plusIsSpace: false)
      if segment == "." || segment == ".." {
        throw .badRequest("the path has a relative segment")
      }
      segments.append(segment)
    }
    self.segments = segments

    var query: [Parameter] = []
    for part in raw[mark...].dropFirst().split(separator: UInt8(ascii: "&")) {
      let equals = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
      query.append(
        Parameter(
          name: try Self.decode(part[..<equals], plusIsSpace: true),
          value: try Self.decode(part[equals...].dropFirst(), plusIsSpace: true)))
    }
    self.query = query
  }

  private static func decode(
    _ bytes: ArraySlice<UInt8>, plusIsSpace: Bool
  ) throws(HTTPRefusal) -> String {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      index += 1
      if byte == UInt8(ascii: "%") {
        guard index + 1 < bytes.endIndex,
          let high = hexValue(bytes[index]), let low = hexValue(bytes[index + 1])
        else { throw .badRequest("the request target has a broken percent-encoding") }
        index += 2
        decoded.append(high << 4 | low)
      } else {
        decoded.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
      }
    }
    guard !decoded.contains(0) else { throw .badRequest("the request target has a NUL") }
    guard let text = String(validating: decoded, as: UTF8.self) else {
      throw .badRequest("the request target is not UTF-8")
    }
    return text
  }

  static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
