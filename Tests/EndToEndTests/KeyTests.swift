import Foundation
import Glibc
import Testing

extension EndToEnd {
  /// The keys that tokens are checked with, when they change and when they cannot be had.
  @Suite(.serialized) struct Keys {
    private static let secrets = (0..<2).map { [UInt8](repeating: UInt8($0), count: 32) }

    private static func token(_ secret: [UInt8], keyID: String) -> String {
      let now = Int(Date.now.timeIntervalSince1970)
      return SignedToken.make(
        payload: #"{"sub":"ann","aud":"test","iat":\#(now),"exp":\#(now + 600)}"#, key: secret,
        keyID: keyID)
    }

    private static func set(_ secret: [UInt8]) -> Data {
      let key = #"{"kty":"oct","kid":"file","alg":"HS256","k":"\#(SignedToken.encode(secret))"}"#
      return Data(#"{"keys":[\#(key)]}"#.utf8)
    }

    @Test("a key file that changes is read again; one that is broken changes nothing")
    func file() async throws {
      let file = try Workspace.shared.folder("keys").appending(path: "jwks.json")
      try Self.set(Self.secrets[0]).write(to: file)
      try await Stage.set(
        schema: Access.teams, rules: Access.cardsByTeam, auth: "jwks_file: \(file.path)"
      ) { stage in
        let tokens = Self.secrets.map { Self.token($0, keyID: "file") }
        func statuses() async throws -> [Int] {
          var statuses: [Int] = []
          for token in tokens {
            statuses.append(
              try await HTTP.get(port: stage.gateway.port, "/v1/buckets", token: token).status)
          }
          return statuses
        }
        #expect(try await statuses() == [200, 401])
        try Self.set(Self.secrets[1]).write(to: file, options: .atomic)
        try await eventually("the new key") { try await statuses() == [401, 200] }
        try Data("{".utf8).write(to: file)
        try await eventually("the log tells of the broken file") {
          _ = try await statuses()
          return stage.gateway.output.contains("keys.not_read")
        }
        #expect(try await statuses() == [401, 200])
      }
    }

    @Test("while a key server is silent, its tokens have to come back, and others do not wait")
    func silentServer() async throws {
      let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(listener) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          #expect(bind(listener, $0, length) == 0)
          #expect(listen(listener, 16) == 0)
          #expect(getsockname(listener, $0, &length) == 0)
        }
      }
      let port = Int(in_port_t(bigEndian: address.sin_port))
      try await Stage.set(
        schema: Access.teams, rules: Access.cardsByTeam,
        auth: "jwks_url: http://127.0.0.1:\(port)/jwks"
      ) { stage in
        let clock = ContinuousClock()
        let start = clock.now
        let answer = try await HTTP.get(
          port: stage.gateway.port, "/v1/buckets", token: Self.token(Self.secrets[0], keyID: "far"))
        #expect(answer.status == 503)
        let error = answer.json["error"] as? [String: Any]
        #expect(error?["code"] as? String == "SLUICE_AUTH_KEY_SET")
        #expect(Int(answer.headers["retry-after"] ?? "") != nil, "\(answer.headers)")
        #expect(clock.now - start > .seconds(2.5))
        #expect(clock.now - start < .seconds(8))
        let known = clock.now
        let other = try await HTTP.get(
          port: stage.gateway.port, "/v1/buckets", token: try stage.token("ann"))
        #expect(other.status == 200)
        #expect(clock.now - known < .seconds(2))
      }
    }
  }
}
