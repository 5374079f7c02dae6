import Foundation
import Testing

extension EndToEnd {
  /// What no client of ours sends: every answer has a status, a code and a sentence, and the gateway serves on.
  @Suite(.serialized) struct BadInput {
    private static let rules = """
      bucket_definitions:
        team:
          parameters: SELECT team_id FROM memberships WHERE user_id = request.user_id()
          data:
            - SELECT * FROM cards WHERE team_id = bucket.team_id
        own:
          parameters: SELECT request.user_id() AS name, request.parameters() ->> 'a' AS a
          accept_potentially_dangerous_queries: true
          data:
            - SELECT * FROM cards WHERE title = bucket.name AND title = bucket.a
      """

    private static let rows = "/v1/buckets/team%5B1%5D/rows"
    private static let stamp = "2026-11-30T02:05:11.123456Z"
    private static let routes = [
      ("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"), ("GET", "/v1/schema"),
      ("GET", "/v1/buckets"), ("GET", rows), ("POST", "/v1/stream"),
    ]

    @Test("unknown methods and paths are named as such at every route; HEAD is GET without a body")
    func methods() async throws {
      try await play { desk in
        for (method, path) in Self.routes {
          let allowed = method == "GET" ? "GET, HEAD" : "POST"
          for other in [
            "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "get", "GETX",
          ] {
            let answer = try await desk.ask(other, path, expecting: [405], "SLUICE_METHOD")
            #expect(answer.headers["allow"] == allowed, "\(other) \(path)")
          }
          let wrong = method == "GET" ? "POST" : "GET"
          try await desk.ask(wrong, path, expecting: [405], "SLUICE_METHOD")
          let head = try await desk.ask("HEAD", path, expecting: [method == "GET" ? 200 : 405], nil)
          #expect(head.body.isEmpty, "HEAD \(path) is answered with \(head.body.prefix(40))")
        }
        for path in [
          "/", "/v1", "/v2/stream", "/v1/buckets/", "/v1/buckets/x", "/v1/buckets/x/rows/y",
          "/v1/stream/",
          "/Health", "/health/", "/V1/buckets", "/v1/buckets/x/Rows", "/v1;x=1/buckets",
          "/v1/stream.json",
        ] {
          for method in ["GET", "POST", "HEAD", "OPTIONS"] {
            try await desk.ask(
              method, path, expecting: [404], method == "HEAD" ? nil : "SLUICE_NO_ROUTE")
          }
        }
        for method in [
          "G\u{0}T", "G T", "", " GET", "GET\t", String(repeating: "A", count: 100_000), "G\u{e9}T",
        ] {
          try await desk.ask(method, "/health", expecting: [400, 414, 431], "SLUICE_HTTP_")
        }
      }
    }

    @Test("paths and names: broken, doubled and hidden encodings name no bucket but the one meant")
    func paths() async throws {
      try await play { desk in
        for name in ["team%5B1%5D", "team%5b1%5d", "%74eam%5B1%5D", "team[1]"] {
          try await desk.ask("GET", "/v1/buckets/\(name)/rows", expecting: [200], nil)
        }
        for name in [
          "team%255B1%255D", "team%5B01%5D", "team%5B1.0%5D", "team%5B1%5D%20", "team%5B%2B1%5D",
          "team%5B1%5D%2F..%2Fx", "TEAM%5B1%5D", "team%5B1%5D%CC%81", "team%5B1,1%5D",
          "team%5B%221%22%5D",
          "%EF%BB%BFteam%5B1%5D", "team%5B1e0%5D", "team%5B3%5D", "'%20OR%201=1--", "$1", "%25",
          "*",
          "team%5B1%5D;v=1", "team%5B%C2%A01%5D", String(repeating: "x", count: 8000),
        ] {
          try await desk.ask(
            "GET", "/v1/buckets/\(name)/rows", expecting: [404], "SLUICE_NO_BUCKET")
        }
        for name in [
          "%", "%5", "%zz", "team%5B1%5D%00", "%00", "%C1%9B", "%ED%A0%80", "%FF",
          "%F8%88%80%80%80",
          "%u005B", "..", ".", "%2e%2e", "%2E", "", "a//b", "a\u{7f}", "a#b", "a b", "\u{e9}",
          "a\u{1}",
        ] {
          try await desk.ask(
            "GET", "/v1/buckets/\(name)/rows", expecting: [400], "SLUICE_HTTP_BAD_REQUEST")
        }
        try await desk.ask(
          "GET", "/v1/buckets/\(String(repeating: "x", count: 1 << 20))/rows",
          expecting: [414, 431],
          "SLUICE_HTTP_")
        // The user é has a bucket of his name: no other spelling of the letter opens it.
        let token = try desk.stage.token("\u{e9}")
        let own = try await HTTP.get(port: desk.port, "/v1/buckets", token: token)
        #expect(own.body.contains("own"))
        for (letter, status) in [("%C3%A9", 404), ("e%CC%81", 404)] {
          let answer = try await HTTP.get(
            port: desk.port, "/v1/buckets/own%5B%22\(letter)%22,%22\(letter)%22%5D/rows",
            token: token)
          #expect(answer.status == status)
        }
      }
    }

    @Test("query values: nonsense, overflow, repetition and other databases' positions")
    func queries() async throws {
      try await play { desk in
        for value in [
          "", "x", "-1", "1,2", Self.stamp, "\(Self.stamp),", "\(Self.stamp),-1",
          "\(Self.stamp),%2B1",
          "\(Self.stamp),01", "\(Self.stamp),9223372036854775808",
          "\(Self.stamp),99999999999999999999999999999999", "\(Self.stamp),1e3",
          "\(Self.stamp),1.0",
          "\(Self.stamp),1,1,1", "\(Self.stamp),1,", "\(Self.stamp),0x10", "\(Self.stamp)%20,1",
          "2026-02-30T02:05:11.123456Z,16", "9999-99-99T99:99:99.999999Z,16", "null", "%5B%5D",
          "NaN",
          "\(Self.stamp),%D9%A1", String(repeating: "9", count: 9000),
        ] {
          try await desk.ask(
            "GET", "\(Self.rows)?after=\(value)", expecting: [400], "SLUICE_REQUEST_POSITION")
        }
        for value in [
          "\(Self.stamp),16", "\(Self.stamp),9223372036854775807", "2020-01-01T00:00:00.000000Z,16",
          "\(Self.stamp),9223372036854775807,9223372036854775807", "0001-01-01T00:00:00.000000Z,1",
          "\(Self.stamp),0,9223372036854775807",
        ] {
          try await desk.ask(
            "GET", "\(Self.rows)?after=\(value)", expecting: [410], "SLUICE_POSITION_GONE")
        }
        for query in [
          "limit=0", "limit=-1", "limit=1.5", "limit=1e3", "limit=99999999999999999999", "limit=",
          "limit",
          "limit=%201", "limit=%D9%A1", "limit=5001", "limit=0x1", "limit=1&limit=2", "limit=%2B1",
          "after=\(Self.stamp),16&after=\(Self.stamp),16", "defaults=1", "defaults=",
          "defaults=TRUE",
          "defaults=true&defaults=false", "order=v", "=", "=1", "a", "LIMIT=1", "subscribe[]=x",
          "after%5B%5D=1",
        ] {
          try await desk.ask(
            "GET", "\(Self.rows)?\(query)", expecting: [400], "SLUICE_REQUEST_PARAMETER")
        }
        for query in [
          "subscribe=", "subscribe=?a=1", "subscribe=s?a", "subscribe=s?a=1%26a=2",
          "subscribe=s?a=%2500",
        ] {
          for path in [Self.rows, "/v1/buckets"] {
            try await desk.ask("GET", "\(path)?\(query)", expecting: [400], "SLUICE_REQUEST_FIELD")
          }
        }
        for query in [
          "limit=%", "limit=%zz", "after=%00", "x=%ED%A0%80", "%FF=1", "a b", "\u{e9}=1",
        ] {
          try await desk.ask(
            "GET", "\(Self.rows)?\(query)", expecting: [400], "SLUICE_HTTP_BAD_REQUEST")
        }
        for query in ["limit=1", "after=1"] {
          try await desk.ask(
            "GET", "/v1/buckets?\(query)", expecting: [400], "SLUICE_REQUEST_PARAMETER")
        }
        let many = String(repeating: "subscribe=x&", count: 1001)
        try await desk.ask(
          "GET", "/v1/buckets?\(many)", expecting: [400], "SLUICE_REQUEST_PARAMETER")
        for number in [
          "1e400", "1e999999999", "-1e-999999999", String(repeating: "9", count: 9000),
        ] {
          // A stream of that name there is none; the number must do no harm on the way.
          try await desk.ask(
            "GET", "/v1/buckets?subscribe=x?n=\(number)", expecting: [200, 400], nil)
        }
      }
    }

    @Test("heads: lengths that lie, doubled and broken fields, other versions")
    func heads() async throws {
      try await play { desk in
        let stream = "POST /v1/stream HTTP/1.1\r\nHost: x\r\n"
        for (text, statuses) in [
          ("GET /health HTTP/1.1\r\n\r\n", [400]),
          ("GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", [400]),
          ("GET /health HTTP/2.0\r\nHost: x\r\n\r\n", [505]), ("GET /health\r\n\r\n", [400]),
          ("GET http://x HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
          ("GET * HTTP/1.1\r\nHost: x\r\n\r\n", [400]),
          ("GET /health HTTP/1.1\nHost: x\n\n", [400]),
          ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", [400]),
          (stream + "Content-Length: -1\r\n\r\n", [400]),
          (stream + "Content-Length: 1e3\r\n\r\n", [400]),
          (stream + "Content-Length: +2\r\n\r\n{}", [400]),
          (stream + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", [400]),
          (stream + "Content-Length: 99999999999999999999\r\n\r\n", [400, 413]),
          (stream + "Content-Length: 10485761\r\n\r\n", [413]),
          (stream + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", [400]),
          (stream + "Transfer-Encoding: gzip\r\n\r\n", [501]),
          (stream + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", [400]),
          (stream + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", [400]),
          (stream + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n", [400, 413]),
          (stream + "Content Length: 2\r\n\r\n{}", [400]), (stream + "X: a\u{0}b\r\n\r\n", [400]),
          (stream + " folded: 1\r\n\r\n", [400]),
          (stream + "X: \(String(repeating: "x", count: 1 << 20))\r\n\r\n", [431]),
          (stream + String(repeating: "X: y\r\n", count: 20_000) + "\r\n", [431]),
        ] {
          try await desk.ask(raw: Array(text.utf8), expecting: Set(statuses), "SLUICE_HTTP_")
        }
      }
    }

    private static let bodies: [(String, String)] = [
      ("", "SLUICE_REQUEST_"), ("{", "SLUICE_REQUEST_"), ("nul", "SLUICE_REQUEST_"),
      ("[]", "SLUICE_REQUEST_"), ("1", "SLUICE_REQUEST_"), ("\"x\"", "SLUICE_REQUEST_"),
      ("{}{}", "SLUICE_REQUEST_"), ("{} x", "SLUICE_REQUEST_"), ("\u{feff}{}", "SLUICE_REQUEST_"),
      ("{\"a\":1,}", "SLUICE_REQUEST_"), ("{'a':1}", "SLUICE_REQUEST_"),
      ("{\"a\":NaN}", "SLUICE_REQUEST_"),
      ("{\"a\":01}", "SLUICE_REQUEST_"), ("{\"a\":+1}", "SLUICE_REQUEST_"),
      ("{\"a\":.5}", "SLUICE_REQUEST_"),
      ("{/**/}", "SLUICE_REQUEST_"), ("{\"a\":\"\u{0}\"}", "SLUICE_REQUEST_"),
      ("{\"a\":\"\n\"}", "SLUICE_REQUEST_"), ("{\"a\":\"\\x\"}", "SLUICE_REQUEST_"),
      ("{\"client_id\":\"\\ud800\"}", "SLUICE_REQUEST_"),
      ("{\"client_id\":\"\\udc00\\ud800\"}", "SLUICE_REQUEST_"),
      ("{\"client_id\":\"\\u0000\"}", "SLUICE_REQUEST_"),
      ("{\"client_id\":\"\"}", "SLUICE_REQUEST_"),
      ("{\"parameters\":{\"\\u0000\":1}}", "SLUICE_REQUEST_"),
      ("{\"parameters\":{\"a\":\"\\ud800\"}}", "SLUICE_REQUEST_"),
      ("{\"parameters\":{\"a\":[\"\\udfff\"]}}", "SLUICE_REQUEST_"),
      ("{\"x\":{\"y\":\"\\ud800\"}}", "SLUICE_REQUEST_"),
      ("{\"client_id\":\"a\",\"client_id\":\"b\"}", "SLUICE_REQUEST_"),
      ("{\"buckets\":{},\"buckets\":{}}", "SLUICE_REQUEST_"),
      ("{\"buckets\":{\"a\":\"\(stamp),16\",\"a\":\"\(stamp),16\"}}", "SLUICE_REQUEST_"),
      ("{\"buckets\":{\"a\":\"\(stamp),16\",\"\\u0061\":\"\(stamp),16\"}}", "SLUICE_REQUEST_"),
      ("{\"subscriptions\":[{\"stream\":\"a\",\"stream\":\"b\"}]}", "SLUICE_REQUEST_"),
    ]

    private static let wrongTypes: [String] =
      ["5", "[]", "{}", "true", "1e400", "[\"a\"]"].map { "{\"client_id\":\($0)}" }
      + ["5", "{}"].map { "{\"schema\":\($0)}" }
      + [
        "[]", "\"x\"", "5", "{\"a\":5}", "{\"a\":null}", "{\"a\":{}}", "{\"\":\"\(stamp),16\"}",
        "{\"a\":\"\"}",
        "{\"a\":\"\(stamp),-1\"}", "{\"a\":\"\(stamp),9223372036854775808\"}",
        "{\"a\":\"\(stamp),1,1,1\"}",
        "{\"a\":\"16\"}", "{\"a\":\"\(stamp),1\\u0000\"}", "{\"a\":[\"\(stamp),16\"]}",
      ].map { "{\"buckets\":\($0)}" }
      + ["[]", "5", "\"{}\"", "true"].map { "{\"parameters\":\($0)}" }
      + [
        "{}", "\"x\"", "[5]", "[[]]", "[{}]", "[null]", "[{\"stream\":5}]", "[{\"stream\":\"\"}]",
        "[{\"stream\":null}]", "[{\"stream\":\"s\",\"parameters\":[]}]",
        "[{\"stream\":\"s\",\"override_priority\":4}]",
        "[{\"stream\":\"s\",\"override_priority\":-1}]",
        "[{\"stream\":\"s\",\"override_priority\":1.5}]",
        "[{\"stream\":\"s\",\"override_priority\":\"1\"}]",
        "[{\"stream\":\"s\",\"override_priority\":99999999999999999999}]",
      ].map { "{\"subscriptions\":\($0)}" }
      + ["1", "\"true\"", "null", "[]"].map { "{\"include_defaults\":\($0)}" }

    private static func large(_ element: String, _ count: Int) -> String {
      "[" + Array(repeating: element, count: count).joined(separator: ",") + "]"
    }

    @Test(
      "bodies: what is no request is refused, what is one is only ever a value; memory stays bounded"
    )
    func bodies() async throws {
      try await play { desk in
        for (body, code) in Self.bodies + Self.wrongTypes.map({ ($0, "SLUICE_REQUEST_") }) {
          try await desk.stream(Array(body.utf8), expecting: [400], code)
        }
        for bytes in [
          [0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82],
        ] as [[UInt8]] {
          let body = Array("{\"client_id\":\"".utf8) + bytes + Array("\"}".utf8)
          try await desk.stream(body, expecting: [400], "SLUICE_REQUEST_UTF8")
        }
        // Requests like any other: the numbers and names in them are values, whatever they are.
        for value in [
          "1e400", "-0", "1e-400", "123456789012345678901234567890", "1e999999999", "-1E+131072",
          "\"\\u2028\"",
          "\"'; DROP TABLE cards; --\"", "{\"a\":1,\"a\":2}", "null", "[[[1]]]",
          String(repeating: "9", count: 20_000),
          "\"\(String(repeating: "\\u00e9", count: 5000))\"", "\"%00\"", "true",
        ] {
          try await desk.stream(
            Array("{\"parameters\":{\"a\":\(value)}}".utf8), expecting: [200, 400],
            "SLUICE_REQUEST_")
          try await desk.stream(
            Array("{\"subscriptions\":[{\"stream\":\"s\",\"parameters\":{\"a\":\(value)}}]}".utf8),
            expecting: [200, 400], "SLUICE_REQUEST_")
        }
        // Of another database, or of no bucket that there is: the copy begins anew, or is let go.
        for position in [
          "2020-01-01T00:00:00.000000Z,16,16",
          "\(Self.stamp),9223372036854775807,9223372036854775807",
        ] {
          for name in ["team[1]", "nothing[]", "'; --", "x\\ud83d\\ude00"] {
            try await desk.stream(
              Array("{\"buckets\":{\"\(name)\":\"\(position)\"}}".utf8), expecting: [200], nil)
          }
        }
        let before = desk.stage.gateway.residentBytes
        var peak = before
        for _ in 0..<5 {
          for body in [
            "{\"parameters\":{\"a\":\(Self.large("1", 100_000))}}",
            "{\"x\":\(Self.large("{}", 100_000))}",
            "{\"subscriptions\":\(Self.large("{\"stream\":\"s\"}", 50_000))}",
            "{\"buckets\":{\((0..<15_000).map { "\"b\($0)\":\"\(Self.stamp),16\"" }.joined(separator: ","))}}",
            "{\"x\":" + String(repeating: "[", count: 10_000)
              + String(repeating: "]", count: 10_000) + "}",
            "{\"parameters\":" + String(repeating: "{\"a\":", count: 10_000) + "1"
              + String(repeating: "}", count: 10_000) + "}",
            String(repeating: "[", count: 900_000),
            "{\"a\":\"" + String(repeating: "x", count: 5 << 20) + "\"}",
            "{\"client_id\":\"" + String(repeating: "x", count: 900_000) + "\"}",
          ] {
            try await desk.stream(Array(body.utf8), expecting: [400], "SLUICE_REQUEST_")
            peak = max(peak, desk.stage.gateway.residentBytes)
          }
          try await desk.stream(
            [UInt8](repeating: 0x20, count: 11 << 20), expecting: [413],
            "SLUICE_HTTP_BODY_TOO_LARGE")
        }
        peak = max(peak, desk.stage.gateway.residentBytes)
        // A body of ten megabytes, what was read of it, and what the allocator keeps of both.
        #expect(peak - before < 96 << 20, "grew by \((peak - before) >> 20) MB")
      }
    }

    @Test("tokens: of a megabyte, of no shape, and with claims that no signer writes")
    func tokens() async throws {
      try await play { desk in
        let good = try desk.stage.token("ann")
        let parts = good.split(separator: ".").map(String.init)
        let encode = { (text: String) in SignedToken.encode(Array(text.utf8)) }
        for (method, path) in Self.routes where path.hasPrefix("/v1") {
          for token in [
            "x", "..", "a.b.c", "a.b", "a.b.c.d", good + "x", good + ".", "." + good, good + "=",
            "%00",
            "\(parts[0]).\(parts[1]).", "\(parts[0])..\(parts[2])", ".\(parts[1]).\(parts[2])",
            "\(encode("{}")).\(parts[1]).\(parts[2])", "\(encode("null")).\(parts[1]).\(parts[2])",
            "\(encode("{\"alg\":null}")).\(parts[1]).\(parts[2])",
            "\(encode("{\"alg\":\"none\"}")).\(parts[1]).",
            "\(encode("{\"alg\":[]}")).\(parts[1]).\(parts[2])",
            "\(encode("{\"alg\":\"HS256\",\"kid\":5}")).\(parts[1]).\(parts[2])",
            "\(encode("{\"alg\":\"HS256\",\"kid\":\"\\u0000\"}")).\(parts[1]).\(parts[2])",
            "\(encode("{\"alg\":\"HS256\",\"alg\":\"none\"}")).\(parts[1]).\(parts[2])",
            "\(encode(String(repeating: "[", count: 9000))).\(parts[1]).\(parts[2])",
            String(repeating: "a", count: 20_000), String(repeating: ".", count: 10_000),
          ] {
            try await desk.ask(method, path, token: token, expecting: [401], "SLUICE_AUTH_")
          }
          try await desk.ask(
            method, path, token: String(repeating: "a", count: 1 << 20), expecting: [431],
            "SLUICE_HTTP_")
          for header in [
            "", "Bearer", "Bearer ", "Basic eDp5", "Bearer  \(good)", "\(good)", "Bearer \(good) x",
          ] {
            try await desk.ask(
              method, path, headers: "Authorization: \(header)\r\n", expecting: [401],
              "SLUICE_AUTH_MISSING")
          }
          try await desk.ask(
            method, path, headers: "Authorization: Bearer a\u{0}b\r\n", expecting: [400],
            "SLUICE_HTTP_")
        }
        // The scheme's case does not matter (RFC 9110, 11.1).
        try await desk.ask(
          "GET", "/v1/buckets", headers: "Authorization: bEARER \(good)\r\n", expecting: [200], nil)

        let expiry = Int(Date.now.timeIntervalSince1970) + 600
        func claims(_ text: String) -> String {
          SignedToken.make(payload: "{\(text)}", key: desk.stage.key)
        }
        let usual = "\"aud\":\"test\",\"iat\":\(expiry - 600),\"exp\":\(expiry)"
        for text in [
          "\"sub\":\"ann\\u0000\",\(usual)", "\"sub\":\"\\ud800\",\(usual)", "\"sub\":[],\(usual)",
          "\"sub\":{},\(usual)", usual, "\"sub\":\"ann\",\"sub\":\"bob\",\(usual)",
          "\"a\\u0000\":1,\"sub\":\"ann\",\(usual)",
          "\"sub\":\"ann\",\(usual),\"x\":\(String(repeating: "[", count: 5000))\(String(repeating: "]", count: 5000))",
          "\"sub\":\"ann\",\(usual),\"parameters\":[]", "\"sub\":\"ann\",\(usual),\"x\":1.",
          "\"sub\":\"ann\"",
          "\"sub\":\"ann\",\"aud\":5,\"iat\":1,\"exp\":\(expiry)",
          "\"sub\":\"ann\",\"aud\":[[\"test\"]],\"iat\":1,\"exp\":\(expiry)",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":\(expiry - 600),\"exp\":1e400",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":\(expiry - 600),\"exp\":1e300",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":\(expiry - 600),\"exp\":-1",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":\(expiry - 600),\"exp\":\"\(expiry)\"",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":\(expiry - 600),\"exp\":true",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":\(expiry - 600),\"exp\":[\(expiry)]",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":-1e11,\"exp\":\(expiry)",
          "\"sub\":\"ann\",\"aud\":\"test\",\"iat\":null,\"exp\":\(expiry)",
        ] {
          try await desk.ask(
            "GET", "/v1/buckets", token: claims(text), expecting: [401], "SLUICE_AUTH_")
        }
        // Claims that a rule may read, and that are only values.
        for text in [
          "\"sub\":1e400", "\"sub\":1e131071", "\"sub\":1e999999999", "\"sub\":true",
          "\"sub\":null", "\"sub\":\"\"",
          "\"sub\":-0", "\"sub\":123456789012345678901234567890", "\"sub\":\"%\"",
          "\"sub\":\"ann\",\"x\":1e999999",
          "\"sub\":\"ann\",\"x\":\(Self.large("1", 4000))",
          "\"sub\":\"ann\",\"x\":\(String(repeating: "9", count: 9000))",
        ] {
          for path in ["/v1/buckets", Self.rows] {
            try await desk.ask(
              "GET", path, token: claims("\(text),\(usual)"), expecting: [200, 401, 404], "SLUICE_")
          }
        }
      }
    }

    private func play(_ body: (Desk) async throws -> Void) async throws {
      try await Stage.set(schema: Access.teams, rules: Self.rules) { stage in
        let desk = Desk(stage: stage, token: try stage.token("ann"))
        try await body(desk)
        let answer = try await HTTP.get(port: desk.port, "/v1/buckets", token: desk.token)
        #expect(answer.status == 200)
        #expect(try await stage.source.run("SELECT count(*) FROM cards") == "300")
        #expect(
          !stage.gateway.output.contains("request.failed"), "\(stage.gateway.output.suffix(2000))")
      }
    }
  }
}

/// Asks the gateway strange things, and looks at how it answers.
private struct Desk {
  let stage: Stage
  let token: String

  var port: Int { stage.gateway.port }

  @discardableResult
  func ask(
    _ method: String, _ target: String, token: String? = nil, headers: String? = nil,
    body: [UInt8] = [], expecting statuses: Set<Int>, _ code: String?,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> HTTP.Answer {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += headers ?? "Authorization: Bearer \(token ?? self.token)\r\n"
    if !body.isEmpty || method == "POST" { head += "Content-Length: \(body.count)\r\n" }
    return try await ask(
      raw: Array((head + "\r\n").utf8) + body, isHead: method == "HEAD", expecting: statuses, code,
      sourceLocation: sourceLocation)
  }

  /// Opens a stream with this body. One that begins must show a checkpoint, and is then let go.
  func stream(
    _ body: [UInt8], expecting statuses: Set<Int>, _ code: String?,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await ask(
      "POST", "/v1/stream", body: body, expecting: statuses, code, sourceLocation: sourceLocation)
  }

  @discardableResult
  func ask(
    raw bytes: [UInt8], isHead: Bool = false, expecting statuses: Set<Int>, _ code: String?,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> HTTP.Answer {
    let port = port
    let answer = try await blocking {
      let deadline = Date.now + 20
      let connection = try WireConnection(port: port) { Date.now > deadline }
      connection.sendAsMuchAsIsTaken(bytes)
      try connection.readHead()
      var body: [UInt8] = []
      if !isHead, connection.headers["content-type"] == "application/x-ndjson" {
        // Without end: up to the first checkpoint.
        while let line = try connection.bodyLine() {
          body = line
          if !line.starts(with: Array("{\"schema\"".utf8)) { break }
        }
      } else if !isHead {
        body = try connection.wholeBody()
      }
      return HTTP.Answer(
        status: connection.status, headers: connection.headers,
        body: String(decoding: body, as: UTF8.self))
    }
    let asked = String(decoding: bytes.prefix(300), as: UTF8.self)
    let note: Comment = "\(asked)… is answered \(answer.status) \(answer.body.prefix(300))"
    #expect(statuses.contains(answer.status), note, sourceLocation: sourceLocation)
    if answer.status == 200 {
      #expect(!answer.body.contains("{\"error\""), note, sourceLocation: sourceLocation)
    } else if !isHead {
      expectSentence(answer, code, note, sourceLocation)
    }
    let health = try await HTTP.get(port: port, "/health")
    #expect(health.status == 200, note, sourceLocation: sourceLocation)
    return answer
  }

  private func expectSentence(
    _ answer: HTTP.Answer, _ code: String?, _ note: Comment, _ sourceLocation: SourceLocation
  ) {
    let error = answer.json["error"] as? [String: Any]
    let (found, message) = (error?["code"] as? String ?? "", error?["message"] as? String ?? "")
    #expect(found.hasPrefix(code ?? "SLUICE_"), note, sourceLocation: sourceLocation)
    #expect(message.hasSuffix("."), note, sourceLocation: sourceLocation)
    // A capital, or the name of a field.
    #expect(message.first?.isLetter == true, note, sourceLocation: sourceLocation)
    #expect(!message.dropLast().contains(". "), note, sourceLocation: sourceLocation)
    #expect(message.count < 200, note, sourceLocation: sourceLocation)
    for word in ["SELECT", "syntax error", "pg_catalog", "sluice.", "card ", "WHERE", "Swift"] {
      #expect(!answer.body.contains(word), note, sourceLocation: sourceLocation)
    }
  }
}
