/// Bytes of a connection in, requests out; no I/O. Strict: what two parsers could read differently is
/// refused (RFC 9112).
///
/// Lines end in CRLF only; no folded headers, no space before a colon; exactly one Host in HTTP/1.1; one
/// Content-Length or Transfer-Encoding, never both; chunked is the only coding.
struct HTTPRequestParser {
  enum Event: Equatable {
    /// All bytes given are used up and the request is not complete.
    case needsMore
    /// The head is complete and a body follows; the peer may wait for "100 Continue" first.
    case bodyFollows(expectsContinue: Bool)
    /// The request is complete; `takeRequest()` gives it. Bytes behind it are not used.
    case complete
  }

  private enum State {
    case requestLine
    case headers
    case body(remaining: Int)
    case chunkSize
    case chunk(remaining: Int)
    case chunkEnd
    case trailers
    case complete
  }

  private let maxHeaderBytes: Int
  private let maxBodyBytes: Int
  private var state = State.requestLine
  private var line: [UInt8] = []
  private var lineBytes = 0
  private var request = HTTPRequest(method: "", path: "", segments: [])

  /// Whether a byte of the next request has been seen.
  private(set) var hasBegun = false

  init(maxHeaderBytes: Int, maxBodyBytes: Int) {
    self.maxHeaderBytes = maxHeaderBytes
    self.maxBodyBytes = maxBodyBytes
  }

  /// Uses bytes up to the next event. After a refusal the connection is of no further use.
  mutating func consume(
    _ bytes: UnsafeRawBufferPointer
  ) throws(HTTPRefusal) -> (used: Int, event: Event) {
    var used = 0
    while used < bytes.count {
      hasBegun = true
      switch state {
      case .complete: return (used, .complete)
      case .body(let remaining):
        let count = min(remaining, bytes.count - used)
        request.body.append(contentsOf: bytes[used..<used + count])
        used += count
        state = remaining == count ? .complete : .body(remaining: remaining - count)
      case .chunk(let remaining):
        let count = min(remaining, bytes.count - used)
        request.body.append(contentsOf: bytes[used..<used + count])
        used += count
        state = remaining == count ? .chunkEnd : .chunk(remaining: remaining - count)
      case .requestLine, .headers, .chunkSize, .chunkEnd, .trailers:
        let rest = bytes[used...]
        let end = rest.firstIndex(of: UInt8(ascii: "\n"))
        let count = (end.map { $0 + 1 } ?? bytes.count) - used
        line.append(contentsOf: bytes[used..<used + count])
        used += count
        try countLine(count)
        guard end != nil else { return (used, .needsMore) }
        if let event = try takeLine() { return (used, event) }
      }
      if case .complete = state { return (used, .complete) }
    }
    return (used, .needsMore)
  }

  /// The complete request; the parser is then ready for the next.
  mutating func takeRequest() -> HTTPRequest {
    let taken = request
    self = HTTPRequestParser(maxHeaderBytes: maxHeaderBytes, maxBodyBytes: maxBodyBytes)
    return taken
  }

  /// Lines are bounded together; those of the chunks of a body each by themselves.
  private mutating func countLine(_ count: Int) throws(HTTPRefusal) {
    lineBytes += count
    switch state {
    case .chunkSize, .chunkEnd:
      if line.count > 256 { throw .badRequest("a chunk's size line is too long") }
      lineBytes -= count
    case .requestLine:
      if lineBytes > maxHeaderBytes { throw .targetTooLong }
    default:
      if lineBytes > maxHeaderBytes { throw .headerTooLarge }
    }
  }

  private mutating func takeLine() throws(HTTPRefusal) -> Event? {
    guard line.count >= 2, line[line.count - 2] == UInt8(ascii: "\r") else {
      throw .badRequest("a line does not end in CRLF")
    }
    line.removeLast(2)
    defer { line.removeAll(keepingCapacity: true) }
    switch state {
    case .requestLine:
      // Empty lines before a request are left over from careless clients.
      if !line.isEmpty {
        try takeRequestLine()
        state = .headers
      }
    case .headers:
      if line.isEmpty { return try finishHead() }
      let (name, value) = try Self.field(line)
      request.headers.add(name, value)
    case .chunkSize: try takeChunkSize()
    case .chunkEnd:
      guard line.isEmpty else { throw .badRequest("a chunk is longer than it says") }
      state = .chunkSize
    case .trailers:
      if line.isEmpty { state = .complete } else { _ = try Self.field(line) }
    case .body, .chunk, .complete: break
    }
    return nil
  }

  private mutating func takeRequestLine() throws(HTTPRefusal) {
    let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(Self.isTokenByte) else {
      throw .badRequest("the request line is not method, target and version")
    }
    switch String(decoding: parts[2], as: UTF8.self) {
    case "HTTP/1.1": request.isVersion10 = false
    case "HTTP/1.0": request.isVersion10 = true
    case let other where other.hasPrefix("HTTP/"): throw .versionUnknown
    default: throw .badRequest("the request line has no version")
    }
    request.method = String(decoding: parts[0], as: UTF8.self)
    let target = try RequestTarget(Array(parts[1]))
    request.path = target.path
    request.segments = target.segments
    request.query = target.query.map { ($0.name, $0.value) }
  }

  private static func field(_ line: [UInt8]) throws(HTTPRefusal) -> (String, String) {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0,
      line[..<colon].allSatisfy(isTokenByte)
    else { throw .badRequest("a header has no proper name") }
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 9 }
    var value = line[(colon + 1)...].drop(while: isSpace)
    while let last = value.last, isSpace(last) { value.removeLast() }
    guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 9 }) else {
      throw .badRequest("a header's value has a control character")
    }
    return (String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
  }

  private mutating func finishHead() throws(HTTPRefusal) -> Event? {
    let headers = request.headers
    let hosts = headers.all("host").count
    guard hosts == 1 || request.isVersion10 && hosts == 0 else {
      throw .badRequest("a request has exactly one Host")
    }
    let connection = headers.all("connection").joined(separator: ",").lowercased()
      .split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
    request.keepsAlive = !request.isVersion10 && !connection.contains("close")
    let lengths = headers.all("content-length")
    let codings = headers.all("transfer-encoding")
    if !codings.isEmpty {
      guard lengths.isEmpty, !request.isVersion10 else {
        throw .badRequest("the length of the body is ambiguous")
      }
      guard codings.count == 1, codings[0].lowercased() == "chunked" else { throw .codingUnknown }
      state = .chunkSize
    } else if let length = lengths.first {
      guard lengths.count == 1, !length.isEmpty, length.utf8.count < 19,
        length.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(length)
      else { throw .badRequest("Content-Length is not one number") }
      guard count <= maxBodyBytes else { throw .bodyTooLarge }
      request.body.reserveCapacity(min(count, 64 << 10))
      state = count == 0 ? .complete : .body(remaining: count)
    } else {
      state = .complete
    }
    if case .complete = state { return .complete }
    let expectation = headers["expect"]?.lowercased()
    return .bodyFollows(expectsContinue: expectation == "100-continue" && !request.isVersion10)
  }

  private mutating func takeChunkSize() throws(HTTPRefusal) {
    // Extensions mean nothing here.
    let digits = line.prefix { $0 != UInt8(ascii: ";") }
    guard !digits.isEmpty, digits.count <= 8 else {
      throw .badRequest("a chunk has no proper size")
    }
    var size = 0
    for digit in digits {
      guard let value = RequestTarget.hexValue(digit) else {
        throw .badRequest("a chunk has no proper size")
      }
      size = size << 4 | Int(value)
    }
    guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 9 }) else {
      throw .badRequest("a chunk's size line has a control character")
    }
    guard request.body.count + size <= maxBodyBytes else { throw .bodyTooLarge }
    state = size == 0 ? .trailers : .chunk(remaining: size)
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: tokenMarks.contains(byte)
    }
  }

  private static let tokenMarks = Array("!#$%&'*+-.^_`|~".utf8)
}
