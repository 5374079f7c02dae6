import Foundation
import Synchronization
import Testing

@testable import TokenAuth

/// A key server in memory, which counts how often it is asked.
private final class KeyServer: Sendable {
  let state = Mutex<(answer: String?, fetches: Int)>(("{\"keys\":[]}", 0))

  var fetches: Int { state.withLock { $0.fetches } }

  func publish(_ answer: String?) { state.withLock { $0.answer = answer } }

  func source() throws -> RemoteKeys {
    let url = try #require(URL(string: "https://keys.test/jwks"))
    return RemoteKeys(url: url) { _ in
      try self.state.withLock { state in
        state.fetches += 1
        guard let answer = state.answer else { throw CancellationError() }
        return Array(answer.utf8)
      }
    }
  }
}

struct KeySourceTests {
  /// The key of RFC 8037 appendix A.2 under a name.
  private static func set(_ name: String) -> String {
    """
    {"keys":[{"kty":"OKP","kid":"\(name)","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},\
    {"kty":"oct","kid":"\(name)","k":"c2VjcmV0"},{"kty":"OKP","crv":"X448","x":"AA"},\
    {"kty":"EC","use":"enc","crv":"P-256"}]}
    """
  }

  private static func time(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }

  @Test func `a remote set is fetched once, and only its public signing keys are used`()
    async throws
  {
    let server = KeyServer()
    server.publish(Self.set("a"))
    let source = try server.source()
    for second in 0..<100 {
      let keys = try await source.keys(identifier: "a", now: Self.time(Double(second)))
      #expect(keys.map(\.identifier) == ["a"])
      #expect(keys.allSatisfy { !$0.isSymmetric })
    }
    #expect(server.fetches == 1)
  }

  @Test func `a rotated key is found at once, unless the last fetch was a moment ago`()
    async throws
  {
    let server = KeyServer()
    server.publish(Self.set("a"))
    let source = try server.source()
    _ = try await source.keys(identifier: "a", now: Self.time(0))
    server.publish(Self.set("b"))
    let early = try await source.keys(identifier: "b", now: Self.time(9))
    #expect(early.map(\.identifier) == ["a"])
    let keys = try await source.keys(identifier: "b", now: Self.time(10))
    #expect(keys.map(\.identifier) == ["b"])
  }

  @Test func `forged key names fetch once in ten seconds, however many there are`() async throws {
    let server = KeyServer()
    server.publish(Self.set("a"))
    let source = try server.source()
    for attempt in 0..<600 {
      let now = Self.time(Double(attempt) / 10)
      _ = try await source.keys(identifier: "forged\(attempt)", now: now)
    }
    #expect(server.fetches == 6)
  }

  @Test func `without keys every token hears of the outage, and the server is asked once a second`()
    async throws
  {
    let server = KeyServer()
    server.publish(nil)
    let source = try server.source()
    for attempt in 0..<50 {
      await #expect {
        _ = try await source.keys(identifier: "a", now: Self.time(Double(attempt) / 10))
      } throws: {
        ($0 as? TokenError)?.code == .keySet
      }
    }
    #expect(server.fetches == 5)
    server.publish(Self.set("a"))
    #expect(try await source.keys(identifier: "a", now: Self.time(5)).count == 1)
  }

  @Test func `while the server is away, a name that it may have is an outage, a known one is none`()
    async throws
  {
    let server = KeyServer()
    server.publish(Self.set("a"))
    let source = try server.source()
    _ = try await source.keys(identifier: "a", now: Self.time(0))
    server.publish(nil)
    for second in [20.0, 21] {
      #expect(try await source.keys(identifier: "a", now: Self.time(second)).count == 1)
      await #expect { _ = try await source.keys(identifier: "b", now: Self.time(second)) } throws: {
        ($0 as? TokenError)?.code == .keySet
      }
    }
    #expect(server.fetches == 2)
  }

  @Test func `those who come during a fetch wait for that one`() async throws {
    let server = KeyServer()
    let url = try #require(URL(string: "https://keys.test/jwks"))
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let source = RemoteKeys(url: url) { _ in
      server.state.withLock { $0.fetches += 1 }
      for await _ in gate {}
      return Array(Self.set("a").utf8)
    }
    async let first = source.keys(identifier: "a", now: Self.time(0))
    while server.fetches == 0 { await Task.yield() }
    async let second = source.keys(identifier: "a", now: Self.time(7))
    opener.finish()
    #expect(try await first.count == 1)
    #expect(try await second.count == 1)
    #expect(server.fetches == 1)
  }

  @Test func `a set that cannot be renewed serves for an hour and no longer`() async throws {
    let server = KeyServer()
    server.publish(Self.set("a"))
    let source = try server.source()
    _ = try await source.keys(identifier: "a", now: Self.time(0))
    server.publish(nil)
    #expect(try await source.keys(identifier: "a", now: Self.time(3600)).count == 1)
    await #expect { _ = try await source.keys(identifier: "a", now: Self.time(3601)) } throws: {
      ($0 as? TokenError)?.code == .keySet
    }
  }

  @Test(
    "a configured set with an unusable key is refused",
    arguments: [
      "", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[7]}", "{\"keys\":[{\"kty\":\"oct\"}]}",
      "{\"keys\":[{\"kty\":\"oct\",\"k\":\"\"}]}",
      // 31 bytes, and a modulus of 2,040 bits.
      "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
      "{\"keys\":[{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\""
        + Base64URL.encode([UInt8](repeating: 0xAB, count: 255)) + "\"}]}",
      "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQ\"}]}",
      "{\"keys\":[{\"kty\":\"oct\",\"alg\":\"RS256\",\"k\":\"c2VjcmV0\"}]}",
      "{\"keys\":[{\"kty\":\"oct\",\"alg\":\"none\",\"k\":\"c2VjcmV0\"}]}",
      "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQ\",\"y\":\"AQ\"}]}",
      // A point that is not on the curve.
      "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        + "\"y\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}]}",
    ])
  func unusable(json: String) {
    #expect {
      _ = try JSONWebKeySet(json: Array(json.utf8), origin: .configuration)
    } throws: { ($0 as? TokenError)?.code == .keySet }
  }
}
