import TestSupport
import Testing

@testable import HTTPServer

/// Gives the parser the text in pieces of `size` and returns what it made of it.
func parse(_ text: String, pieces size: Int = .max) throws(HTTPRefusal) -> [HTTPRequest] {
  try parse(Array(text.utf8), pieces: size)
}

func parse(_ bytes: [UInt8], pieces size: Int = .max) throws(HTTPRefusal) -> [HTTPRequest] {
  var parser = HTTPRequestParser(maxHeaderBytes: 4096, maxBodyBytes: 4096)
  var requests: [HTTPRequest] = []
  var rest = bytes[...]
  while !rest.isEmpty {
    let piece = Array(rest.prefix(size))
    let result: Result<(used: Int, event: HTTPRequestParser.Event), HTTPRefusal> =
      piece.withUnsafeBytes { bytes in
        do throws(HTTPRefusal) {
          return .success(try parser.consume(bytes))
        } catch {
          return .failure(error)
        }
      }
    let (used, event) = try result.get()
    rest = rest.dropFirst(used)
    if event == .complete { requests.append(parser.takeRequest()) }
  }
  return requests
}

@Suite struct HTTPRequestParserTests {
  private static let three =
    "GET /a?x=%41&y HTTP/1.1\r\nHost: h\r\nA: \t b c \t\r\na: d\r\n\r\n"
    + "\r\nPOST /b HTTP/1.1\r\nhOST:h\r\nContent-Length: 3\r\n\r\nxyz"
    + "PUT http://h/c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
    + "a\r\n0123456789\r\n00\r\nT: 1\r\n\r\n"

  @Test(arguments: [1, 2, 3, 7, 64, .max])
  func `however the bytes are cut, the requests are the same`(size: Int) throws {
    let requests = try parse(Self.three, pieces: size)
    #expect(requests.map(\.method) == ["GET", "POST", "PUT"])
    #expect(requests.map(\.path) == ["/a", "/b", "/c"])
    #expect(requests.map { String(decoding: $0.body, as: UTF8.self) } == ["", "xyz", "0123456789"])
    let first = try #require(requests.first)
    #expect(first.headers.all("a") == ["b c", "d"])
    #expect(first.query("x") == "A" && first.query("y") == "")
  }

  // RFC 9112: 2.2 line ends, 3.2 Host, 5.1 space before the colon, 5.2 folding, 6.3 lengths, 7.1 chunks.
  @Test(
    arguments: [
      ("GET / HTTP/1.1\nHost: h\n\n", 400),
      ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", 400),
      ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /#a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /é HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /?%0 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /a/./b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505),
      ("GET / FTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\nx", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\nx", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\nx", 400),
      (
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400
      ),
      ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", 413),
    ])
  func `what two parsers could read differently is refused`(text: String, status: Int) {
    #expect(throws: HTTPRefusal.self) { try parse(text) }
    for size in [1, .max] {
      do {
        _ = try parse(text, pieces: size)
      } catch {
        #expect(error.status == status)
      }
    }
  }

  @Test func `a head and chunk lines without end are refused before they fill memory`() {
    #expect(throws: HTTPRefusal.targetTooLong) {
      try parse("GET /" + String(repeating: "a", count: 5000), pieces: 10)
    }
    #expect(throws: HTTPRefusal.headerTooLarge) {
      try parse(
        "GET / HTTP/1.1\r\nHost: h\r\n" + String(repeating: "A: b\r\n", count: 1000), pieces: 10)
    }
    #expect(throws: HTTPRefusal.self) {
      try parse(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;"
          + String(repeating: "a", count: 5000), pieces: 10)
    }
    #expect(throws: HTTPRefusal.headerTooLarge) {
      try parse(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
          + String(repeating: "A: b\r\n", count: 1000), pieces: 10)
    }
  }

  @Test func `requests with bytes changed are read alike however they are cut`() {
    var random = SeededGenerator()
    let original = Array(Self.three.utf8)
    for _ in 0..<2000 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = bytes.indices.randomElement(using: &random) ?? 0
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[index] = UInt8.random(in: 0..<128, using: &random)
        case 1: bytes.remove(at: index)
        default: bytes.insert("\r\n: %0/".utf8.randomElement(using: &random) ?? 0, at: index)
        }
      }
      let outcomes = [1, 5, Int.max].map { (size: Int) -> [String] in
        do throws(HTTPRefusal) {
          let requests = try parse(bytes, pieces: size)
          return requests.map { "\($0.method) \($0.path) \($0.body)" }
        } catch {
          return ["refused \(error.status)"]
        }
      }
      #expect(Set(outcomes).count == 1)
    }
  }
}
