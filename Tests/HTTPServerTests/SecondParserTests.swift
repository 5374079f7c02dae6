import CHTTPParser
import TestSupport
import Testing

@testable import HTTPServer

/// Requests as http-parser, which Node.js and many proxies were built on, reads them.
private final class SecondParser {
  struct Request: Equatable {
    var method: String
    var target: [UInt8] = []
    var body: [UInt8] = []
  }

  private var parser = http_parser()
  private var settings = http_parser_settings()
  private var current = Request(method: "")
  private var requests: [Request] = []

  init() {
    http_parser_init(&parser, HTTP_REQUEST)
    http_parser_settings_init(&settings)
    settings.on_message_begin = { parser in
      SecondParser.of(parser).current = Request(method: "")
      return 0
    }
    settings.on_url = { parser, bytes, count in
      SecondParser.of(parser).current.target += SecondParser.bytes(bytes, count)
      return 0
    }
    settings.on_body = { parser, bytes, count in
      SecondParser.of(parser).current.body += SecondParser.bytes(bytes, count)
      return 0
    }
    settings.on_message_complete = { parser in
      guard let parser else { return 1 }
      let second = SecondParser.of(parser)
      let method = http_method(rawValue: UInt32(parser.pointee.method))
      second.current.method = String(cString: http_method_str(method))
      second.requests.append(second.current)
      return 0
    }
  }

  /// The complete requests, and the name of what it refused, if it did.
  func read(_ input: [UInt8]) -> (requests: [Request], refusal: String?) {
    parser.data = Unmanaged.passUnretained(self).toOpaque()
    let used = input.withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) {
        http_parser_execute(&parser, &settings, $0.baseAddress, $0.count)
      }
    }
    let failure = http_errno(rawValue: UInt32(parser.http_errno))
    let isRefused = used != input.count || failure != HPE_OK
    return (requests, isRefused ? String(cString: http_errno_name(failure)) : nil)
  }

  private static func of(_ parser: UnsafeMutablePointer<http_parser>?) -> SecondParser {
    guard let data = parser?.pointee.data else { preconditionFailure("the parser lost its owner") }
    return Unmanaged<SecondParser>.fromOpaque(data).takeUnretainedValue()
  }

  private static func bytes(_ start: UnsafePointer<CChar>?, _ count: Int) -> [UInt8] {
    UnsafeRawBufferPointer(start: start, count: count).map(\.self)
  }
}

/// A proxy in front may read with another parser than ours. Where ours accepts, the other must have seen
/// the same requests with the same ends, or refused: else a request could be smuggled through.
@Suite struct SecondParserTests {
  private static let seeds = [
    "GET /a?x=%41&y HTTP/1.1\r\nHost: h\r\nA: \t b c \t\r\na: d\r\n\r\n"
      + "\r\nPOST /b HTTP/1.1\r\nhOST:h\r\nContent-Length: 3\r\n\r\nxyz"
      + "PUT http://h/c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
      + "a\r\n0123456789\r\n00\r\nT: 1\r\n\r\n",
    "POST /v1/stream HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\n\r\n"
      + "GET /x HTTP/1.1\r\nHost: h\r\n\r\n\r\n" + "GET /y HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      + "5;a=\"b\"\r\nabcde\r\n1E\r\n012345678901234567890123456789\r\n0\r\n\r\n"
      + "DELETE /z HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
  ]
  private static let insertions = [
    "\r", "\n", "\r\n", " ", "\t", ":", ";", ",", "0", "chunked", "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n", "Transfer-Encoding : chunked\r\n", "Connection: close\r\n",
    "Content-Length: 5, 5\r\n", "Transfer-Encoding: identity, chunked\r\n", "HTTP/1.0", "\0", "+",
    "0x", "\u{b}", "Host: i\r\n", "0\r\n\r\n",
  ]

  @Test func `what is accepted, a second parser reads alike or refuses`() throws {
    var random = SeededGenerator()
    var agreed = 0
    for _ in 0..<20_000 {
      var bytes = Array((Self.seeds.randomElement(using: &random) ?? "").utf8)
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let index = Int.random(in: 0...bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where index < bytes.count: bytes[index] = .random(in: 0...255, using: &random)
        case 1 where index < bytes.count: bytes.remove(at: index)
        default:
          bytes.insert(
            contentsOf: (Self.insertions.randomElement(using: &random) ?? "").utf8, at: index)
        }
      }
      let ours: [HTTPRequest]
      do throws(HTTPRefusal) { ours = try parse(bytes) } catch { continue }
      let (theirs, refusal) = SecondParser().read(bytes)
      // Behind a request that closes the connection nothing is read, whatever stands there.
      let last = ours.firstIndex { !$0.keepsAlive }.map { $0 + 1 } ?? ours.count
      if refusal != nil, theirs.count < last { continue }
      agreed += 1
      let input: Comment = "seed \(random.seed): \(String(decoding: bytes, as: UTF8.self))"
      for (one, other) in zip(ours.prefix(last), theirs) {
        #expect(one.method == other.method, input)
        #expect(one.body == other.body, input)
      }
      #expect(theirs.count >= last, input)
    }
    // Most mutations are refused by one or the other; the untouched seeds alone are a quarter.
    #expect(agreed > 4000, "seed \(random.seed)")
  }
}
