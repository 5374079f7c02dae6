import Foundation
import Postgres
import SyncProtocol
import TestSupport
import Testing

@testable import SyncService

/// What a stranger may send, and what comes back.
@Suite struct GatewayRequestTests {
  private func run(_ body: (LiveGateway) async throws -> Void) async throws {
    try await LiveGateway.run(
      schema: GatewayTests.schema + """
        INSERT INTO items SELECT 'i' || i, 'u', i FROM generate_series(1, 25) i;
        INSERT INTO items VALUES ('other', 'somebody else', 99);
        """,
      rules: GatewayTests.rules, body)
  }

  @Test func `the pages of a bucket are its rows, each once`() async throws {
    try await run { gateway in
      let token = try LiveGateway.token("u")
      let list = try await gateway.get("/v1/buckets", token: token)
      #expect(list.status == 200)
      #expect(list.body.contains(#""name":"mine[\"u\"]","priority":1,"count":25,"position":""#))
      var after: String?
      var rows: [String] = []
      var more = true
      while more {
        let query = after.map { "&after=" + $0.replacing("+", with: "%2B") } ?? ""
        let page = try await gateway.get(
          "/v1/buckets/mine%5B%22u%22%5D/rows?limit=10\(query)", token: token)
        #expect(page.status == 200)
        let object = try JSONSerialization.jsonObject(with: Data(page.body.utf8))
        let members = try #require(object as? [String: Any])
        for operation in try #require(members["ops"] as? [[Any]]) {
          rows.append(try #require(operation[1] as? String))
        }
        after = try #require(members["next"] as? String)
        more = try #require(members["more"] as? Bool)
      }
      #expect(rows.count == 25)
      #expect(Set(rows) == Set((1...25).map { "i\($0)" }))
      let rest = try await gateway.get(
        "/v1/buckets/mine%5B%22u%22%5D/rows?after=\(after ?? "")", token: token)
      #expect(rest.body.contains(#""ops":[]"#))
    }
  }

  @Test func `the schema is what replicas will hold`() async throws {
    try await run { gateway in
      let answer = try await gateway.get("/v1/schema", token: try LiveGateway.token("u"))
      #expect(answer.status == 200)
      #expect(
        answer.body.contains(
          #"{"name":"items","columns":[{"name":"v","type":"integer"},{"name":"pad","type":"text"}]}"#
        ))
    }
  }

  @Test func `operators need no token`() async throws {
    try await run { gateway in
      let health = try await gateway.get("/health")
      #expect(health.body == "{\"status\":\"ok\"}\n")
      let ready = try await gateway.get("/ready")
      #expect(ready.status == 200)
      let metrics = try await gateway.get("/metrics")
      #expect(metrics.body.contains("sluice_streams_open 0"))
    }
  }

  @Test func `paths and parameters that are not ours are answered with 4xx and nothing else`()
    async throws
  {
    let cases: [(method: String, path: String, status: Int, code: String?)] = [
      ("GET", "/", 404, "SLUICE_NO_ROUTE"),
      ("GET", "/v1", 404, "SLUICE_NO_ROUTE"),
      ("GET", "/v1/stream", 405, "SLUICE_METHOD"),
      ("POST", "/v1/buckets", 405, "SLUICE_METHOD"),
      ("GET", "/v1//buckets", 400, nil),
      ("GET", "/v1/buckets/", 400, nil),
      ("GET", "/v1/x%2F..%2F..", 404, "SLUICE_NO_ROUTE"),
      ("GET", "/v1/buckets/%zz/rows", 400, nil),
      ("GET", "/v1/buckets/%00/rows", 400, nil),
      ("GET", "/v1/buckets/mine%5B%22somebody%20else%22%5D/rows", 404, "SLUICE_NO_BUCKET"),
      ("GET", "/v1/buckets/mine%5B%22u%22%5D%20OR%201=1/rows", 404, "SLUICE_NO_BUCKET"),
      ("GET", "/v1/buckets/mine%5B%22u%22%5D/rows?limit=0", 400, "SLUICE_REQUEST_PARAMETER"),
      ("GET", "/v1/buckets/mine%5B%22u%22%5D/rows?limit=1;DROP", 400, "SLUICE_REQUEST_PARAMETER"),
      ("GET", "/v1/buckets/mine%5B%22u%22%5D/rows?order=v", 400, "SLUICE_REQUEST_PARAMETER"),
      ("GET", "/v1/buckets/mine%5B%22u%22%5D/rows?after=-1", 400, "SLUICE_REQUEST_POSITION"),
      (
        "GET", "/v1/buckets/mine%5B%22u%22%5D/rows?after=2020-01-01T00:00:00.000000Z,16", 410,
        "SLUICE_POSITION_GONE"
      ),
    ]
    try await run { gateway in
      let token = try LiveGateway.token("u")
      for (method, path, status, code) in cases {
        let answer = try await gateway.send(
          method, path, token: token, body: method == "POST" ? "{}" : nil)
        let note: Comment = "\(method) \(path): \(answer.status) \(answer.body)"
        #expect((400..<500).contains(answer.status), note)
        if let code {
          #expect(answer.status == status, note)
          #expect(answer.errorCode == code, note)
        }
        #expect(!answer.body.contains("other") && !answer.body.contains("SELECT"), note)
      }
    }
  }

  @Test(
    "bodies that are no request are refused",
    arguments: [
      "", "[]", "{", "{\"buckets\":[]}", "{\"buckets\":{\"a[]\":\"1,2\"}}",
      "{\"parameters\":[]}", "{\"parameters\":{\"a\":\"\\u0000\"}}",
      "{\"parameters\":{\"a\":\"\\ud800\"}}",
      String(repeating: "[", count: 100_000),
    ])
  func bodies(body: String) async throws {
    try await run { gateway in
      let answer = try await gateway.send(
        "POST", "/v1/stream", token: try LiveGateway.token("u"), body: body)
      #expect(answer.status == 400, "\(body.prefix(60)): \(answer.body)")
      #expect(answer.errorCode?.hasPrefix("SLUICE_REQUEST_") == true)
    }
  }

  @Test func `claims are only ever values`() async throws {
    let subjects = [
      "'; DROP TABLE items; --", "u\"]", "\\u0027", "$1", "%", "u' OR '1'='1",
      String(repeating: "x", count: 5000),
    ]
    let claims = [
      "\"x\":[1,{\"y\":null}]", "\"x\":123456789012345678901234567890", "\"x\":{}",
      "\"x\":\"\\u2028\"",
    ]
    try await run { gateway in
      for subject in subjects {
        let answer = try await gateway.get(
          "/v1/buckets", token: try LiveGateway.token(subject))
        #expect(answer.status == 200, "\(subject.prefix(40)): \(answer.body)")
        #expect(answer.body.contains("\"count\":0"), "\(subject.prefix(40)): \(answer.body)")
      }
      for more in claims {
        let answer = try await gateway.get(
          "/v1/buckets", token: try LiveGateway.token("u", claims: more))
        #expect(answer.status == 200, "\(more): \(answer.body)")
        #expect(answer.body.contains("\"count\":25"), "\(more): \(answer.body)")
      }
      for more in ["\"x\":\"\\u0000\"", "\"x\":\"\\ud800\""] {
        let answer = try await gateway.get(
          "/v1/buckets", token: try LiveGateway.token("u", claims: more))
        #expect(answer.status == 401, "\(more): \(answer.body)")
      }
      let left = try await gateway.source.query("SELECT count(*) FROM items")
      #expect(left.int(0, 0) == 26)
    }
  }

  @Test func `without a token, or with one of another key, nothing is said`() async throws {
    try await run { gateway in
      for path in ["/v1/buckets", "/v1/schema", "/v1/buckets/mine%5B%22u%22%5D/rows"] {
        let none = try await gateway.get(path)
        #expect(none.status == 401)
        #expect(none.errorCode == "SLUICE_AUTH_MISSING")
        var forged = try LiveGateway.token("u")
        forged = String(forged.dropLast(4)) + "AAAA"
        let other = try await gateway.get(path, token: forged)
        #expect(other.status == 401)
        #expect(other.errorCode == "SLUICE_AUTH_SIGNATURE")
      }
    }
  }
}
