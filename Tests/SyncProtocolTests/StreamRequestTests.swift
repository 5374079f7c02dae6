import Testing

@testable import SyncProtocol

@Suite("Stream requests")
struct StreamRequestTests {
  private func code(_ body: String) -> String? { code(Array(body.utf8)) }

  private func code(_ body: [UInt8]) -> String? {
    do {
      _ = try StreamRequest(decoding: body)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("a request is read back as it was written")
  func roundTrip() throws {
    let request = StreamRequest(
      clientID: "device-1", schema: "abc",
      buckets: [
        "by_list[\"a1\"]": SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 17, start: 16),
        "by_list[\"e\u{301}\"]": SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 32),
        "by_list[\"\u{E9}\"]": SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 48),
      ],
      parametersJSON: "{\"a\":[1,2.5e3,null,true,\"x\\u2028\"]}",
      subscriptions: [
        StreamSubscription(stream: "notes", parametersJSON: "{\"p\":1}", overridePriority: 1),
        StreamSubscription(stream: "all"),
      ], includeDefaults: false)
    #expect(request.buckets.count == 3)
    #expect(try StreamRequest(decoding: request.encoded()) == request)
  }

  @Test("an empty object asks for everything from nothing")
  func empty() throws {
    let request = try StreamRequest(decoding: Array("{}".utf8))
    #expect(request == StreamRequest())
    #expect(request.includeDefaults)
  }

  @Test("keys of later versions are passed over")
  func unknownKeys() throws {
    let body = "{\"later\":{\"x\":[1]},\"client_id\":\"c\",\"schema\":null}"
    #expect(try StreamRequest(decoding: Array(body.utf8)) == StreamRequest(clientID: "c"))
  }

  @Test(
    "what is not JSON is refused",
    arguments: [
      "", " ", "[]", "null", "{", "{}}", "{}x", "{\"a\":}", "{\"a\":1,}", "{,}", "{\"a\" 1}",
      "{a:1}",
      "{\"a\":01}", "{\"a\":+1}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":1e}", "{\"a\":-}",
      "{\"a\":NaN}", "{\"a\":tru}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\n\"}",
      "{\"a\":\"", "{\"a\":\"\\", "{\"a\":\"\\\"}", "{\"a\":[1,]}", "{\"a\":[1 2]}", "{\"a\":[}",
      "{'a':1}", "{\"a\":1/*c*/}", "{\"a\":0x10}",
    ])
  func malformed(body: String) {
    #expect(code(body) == "SLUICE_REQUEST_JSON")
  }

  @Test(
    "values of the wrong kind are refused",
    arguments: [
      "{\"client_id\":5}", "{\"client_id\":\"\"}", "{\"buckets\":[]}", "{\"buckets\":{\"a\":1}}",
      "{\"buckets\":{\"\":\"2026-11-30T02:05:11.123456Z,1,0\"}}", "{\"parameters\":[]}",
      "{\"parameters\":\"x\"}", "{\"subscriptions\":{}}", "{\"subscriptions\":[1]}",
      "{\"subscriptions\":[{}]}",
      "{\"subscriptions\":[{\"stream\":\"s\",\"override_priority\":4}]}",
      "{\"subscriptions\":[{\"stream\":\"s\",\"override_priority\":-1}]}",
      "{\"subscriptions\":[{\"stream\":\"s\",\"override_priority\":1.5}]}",
      "{\"subscriptions\":[{\"stream\":\"s\",\"stream\":\"t\"}]}",
      "{\"subscriptions\":[{\"stream\":\"\"}]}", "{\"subscriptions\":[{\"stream\":null}]}",
      "{\"subscriptions\":[{\"stream\":\"s\",\"parameters\":[]}]}",
      "{\"subscriptions\":[{\"stream\":\"s\",\"parameters\":\"{}\"}]}",
      "{\"include_defaults\":1}", "{\"client_id\":\"a\",\"client_id\":\"b\"}",
      "{\"buckets\":{\"a\":\"2026-11-30T02:05:11.123456Z,1,0\",\"\\u0061\":\"2026-11-30T02:05:11.123456Z,1,0\"}}",
    ])
  func wrongKind(body: String) {
    #expect(code(body) == "SLUICE_REQUEST_FIELD")
  }

  @Test("what PostgreSQL cannot store is refused")
  func unstorable() {
    #expect(code("{\"parameters\":{\"a\":\"\\u0000\"}}") == "SLUICE_REQUEST_NUL")
    #expect(code("{\"parameters\":{\"\\u0000\":1}}") == "SLUICE_REQUEST_NUL")
    #expect(code("{\"client_id\":\"a\\u0000\"}") == "SLUICE_REQUEST_NUL")
    #expect(code("{\"parameters\":{\"a\":\"\\ud800\"}}") == "SLUICE_REQUEST_SURROGATE")
    #expect(code("{\"parameters\":{\"a\":\"\\udc00\\ud800\"}}") == "SLUICE_REQUEST_SURROGATE")
    #expect(code("{\"parameters\":{\"a\":\"\\ud800\\ud800\"}}") == "SLUICE_REQUEST_SURROGATE")
    #expect(code("{\"parameters\":{\"a\":\"\\ud83d\\ude00\"}}") == nil)
    #expect(code("{\"parameters\":{\"a\":1e99999}}") == "SLUICE_REQUEST_NUMBER")
    #expect(
      code("{\"parameters\":{\"a\":\(String(repeating: "9", count: 1000))}}")
        == "SLUICE_REQUEST_NUMBER")
    #expect(code("{\"buckets\":{\"a\":\"nowhere\"}}") == "SLUICE_REQUEST_POSITION")
  }

  @Test("bytes that are not UTF-8 are refused")
  func encoding() {
    for bytes in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xC3]] as [[UInt8]] {
      let body = Array("{\"client_id\":\"".utf8) + bytes + Array("\"}".utf8)
      #expect(code(body) == "SLUICE_REQUEST_UTF8")
    }
  }

  @Test("depth and size are bounded")
  func bounds() {
    let deep = String(repeating: "[", count: 100_000)
    #expect(code("{\"parameters\":{\"a\":\(deep)") == "SLUICE_REQUEST_DEPTH")
    #expect(code("{\"x\":\(deep)") == "SLUICE_REQUEST_DEPTH")
    let many = [String](repeating: "1", count: 100_000).joined(separator: ",")
    #expect(code("{\"parameters\":{\"a\":[\(many)]}}") == "SLUICE_REQUEST_SIZE")
    #expect(code("{\"x\":\"\(String(repeating: "a", count: 1 << 20))\"}") == "SLUICE_REQUEST_SIZE")
    let wide = String(repeating: "a", count: 70 << 10)
    #expect(code("{\"parameters\":{\"a\":\"\(wide)\"}}") == "SLUICE_REQUEST_SIZE")
    #expect(
      code("{\"subscriptions\":[{\"stream\":\"s\",\"parameters\":{\"a\":\(deep)")
        == "SLUICE_REQUEST_DEPTH")
    #expect(
      code("{\"subscriptions\":[{\"stream\":\"s\",\"parameters\":{\"a\":\"\(wide)\"}}]}")
        == "SLUICE_REQUEST_SIZE")
    // The same stream again and again is no error, up to the limit.
    let subscription = "{\"stream\":\"s\",\"parameters\":null,\"override_priority\":null}"
    for (count, expected) in [(1000, nil), (1001, "SLUICE_REQUEST_SIZE")] {
      let list = [String](repeating: subscription, count: count).joined(separator: ",")
      #expect(code("{\"subscriptions\":[\(list)]}") == expected)
    }
    let buckets = (0..<3000).map { "\"b\($0)\":\"2026-11-30T02:05:11.123456Z,1,0\"" }
    #expect(
      code("{\"buckets\":{\(buckets.joined(separator: ","))}}") == "SLUICE_REQUEST_SIZE")
  }

  @Test("no cut or change of a request makes it trap")
  func mutations() {
    let whole = StreamRequest(
      clientID: "device \u{1F600}", schema: "abc",
      buckets: ["b[\"a\"]": SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 17, start: 16)],
      parametersJSON: "{\"a\":[1,-2.5e3,null,true,\"x\\u2028\\ud83d\\ude00\"]}",
      subscriptions: [StreamSubscription(stream: "notes", overridePriority: 1)]
    ).encoded()
    for length in 0..<whole.count { #expect(code(Array(whole.prefix(length))) != nil) }
    for index in whole.indices {
      for byte in [0x00, 0x22, 0x5C, 0x2C, 0x7B, 0x7D, 0x5B, 0x5D, 0x30, 0x80, 0xFF] as [UInt8] {
        var changed = whole
        changed[index] = byte
        _ = code(changed)
      }
    }
  }
}
