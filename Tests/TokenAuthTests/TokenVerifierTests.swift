import Foundation
import Testing

@testable import TokenAuth

struct TokenVerifierTests {
  static let now = Date(timeIntervalSince1970: 1_000_000)
  static let good = "{\"sub\":\"ann\",\"aud\":[\"x\",\"shop\"],\"iat\":999990,\"exp\":1000300}"
  static let secret = Array("a secret of the tests, 32 bytes!".utf8)
  static let set =
    "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"dev\",\"alg\":\"HS256\",\"k\":\"\(Base64URL.encode(secret))\"}]}"

  static func verifier(keys: String = set) throws -> TokenVerifier {
    TokenVerifier(
      sources: [FixedKeys(try JSONWebKeySet(json: Array(keys.utf8), origin: .configuration))],
      policy: TokenVerifier.Policy(audience: ["shop"]))
  }

  /// A token with this header and these claims, signed by HMAC-SHA-256 whatever the header says.
  static func token(
    header: String = "{\"alg\":\"HS256\",\"kid\":\"dev\"}", claims: String = good
  ) throws -> String {
    let message = Base64URL.encode(header.utf8) + "." + Base64URL.encode(claims.utf8)
    let signature = try #require(
      MessageDigest.hmac(Array(message.utf8), secret: secret, algorithm: .hs256))
    return message + "." + Base64URL.encode(signature)
  }

  @Test func `a signed token gives its subject, its claims as signed and its end`() async throws {
    let token = try await Self.verifier().verify(try Self.token(), now: Self.now)
    #expect(token.subject == "ann")
    #expect(token.claimsJSON == Self.good)
    #expect(token.expiresAt == Date(timeIntervalSince1970: 1_000_300))
  }

  @Test func `a token of the signer is accepted`() async throws {
    let set = try JSONWebKeySet(json: Array(Self.set.utf8), origin: .configuration)
    let signer = TokenSigner(secret: try #require(set.signingSecret))
    let token = try signer.sign(claimsJSON: Self.good)
    #expect(try await Self.verifier().verify(token, now: Self.now).subject == "ann")
  }

  @Test(
    "a subject may be text, a number, a boolean or null",
    arguments: [
      ("\"7\"", "7"), ("7", "7"), ("true", "true"), ("false", "false"), ("null", nil), ("1", "1"),
    ] as [(String, String?)])
  func subjects(written: String, text: String?) async throws {
    let claims = "{\"sub\":\(written),\"aud\":\"shop\",\"iat\":999990,\"exp\":1000300}"
    let token = try await Self.verifier().verify(try Self.token(claims: claims), now: Self.now)
    #expect(token.subject == text)
  }

  @Test(
    "claims that must be refused",
    arguments: [
      ("{\"aud\":\"shop\",\"iat\":999990,\"exp\":1000300}", .claims),
      ("{\"sub\":{},\"aud\":\"shop\",\"iat\":999990,\"exp\":1000300}", .claims),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990}", .claims),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"exp\":1000300}", .claims),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990,\"exp\":\"1000300\"}", .claims),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990,\"exp\":true}", .claims),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990,\"exp\":1e300}", .claims),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":900000,\"exp\":999939}", .expired),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":1000061,\"exp\":1000300}", .notYetValid),
      (
        "{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990,\"nbf\":1000061,\"exp\":1000300}",
        .notYetValid
      ),
      ("{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990,\"exp\":1086391}", .lifetime),
      ("{\"sub\":\"a\",\"iat\":999990,\"exp\":1000300}", .audience),
      ("{\"sub\":\"a\",\"aud\":\"shops\",\"iat\":999990,\"exp\":1000300}", .audience),
      ("{\"sub\":\"a\",\"aud\":[7],\"iat\":999990,\"exp\":1000300}", .audience),
      (
        "{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990,\"exp\":1000300,\"parameters\":[]}", .claims
      ),
      ("{\"sub\":\"a\\u0000\",\"aud\":\"shop\",\"iat\":999990,\"exp\":1000300}", .claims),
      ("{\"sub\":\"\\ud800\",\"aud\":\"shop\",\"iat\":999990,\"exp\":1000300}", .claims),
      ("{\"sub\":\"a\",\"sub\":\"b\",\"aud\":\"shop\",\"iat\":999990,\"exp\":1000300}", .claims),
      ("[]", .claims), ("", .claims), ("{\"sub\":\"a\"", .claims),
    ] as [(String, TokenError.Code)])
  func refusedClaims(claims: String, code: TokenError.Code) async throws {
    await expectRefused(try Self.token(claims: claims), code)
  }

  @Test(
    "the times are accepted to the last second of the leeway",
    arguments: [
      "{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999000,\"exp\":999941}",
      "{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":1000060,\"exp\":1000300}",
      "{\"sub\":\"a\",\"aud\":\"shop\",\"iat\":999990,\"exp\":1086390}",
    ])
  func limits(claims: String) async throws {
    let token = try await Self.verifier().verify(try Self.token(claims: claims), now: Self.now)
    #expect(token.subject == "a")
  }

  @Test(
    "headers that must be refused",
    arguments: [
      ("{\"alg\":\"none\",\"kid\":\"dev\"}", .algorithm),
      ("{\"alg\":\"None\",\"kid\":\"dev\"}", .algorithm),
      ("{\"alg\":\"RS256\",\"kid\":\"dev\"}", .algorithm),
      ("{\"alg\":\"HS512\",\"kid\":\"dev\"}", .algorithm),
      ("{\"kid\":\"dev\"}", .algorithm), ("{\"alg\":256,\"kid\":\"dev\"}", .algorithm),
      ("{\"alg\":\"HS256\",\"kid\":\"other\"}", .unknownKey), ("{\"alg\":\"HS256\"}", .unknownKey),
      ("{\"alg\":\"HS256\",\"kid\":7}", .malformed),
      ("{\"alg\":\"HS256\",\"kid\":\"dev\",\"crit\":[\"b64\"]}", .malformed),
      ("{\"alg\":\"HS256\",\"alg\":\"HS256\",\"kid\":\"dev\"}", .malformed),
      ("[]", .malformed), ("{", .malformed),
    ] as [(String, TokenError.Code)])
  func refusedHeaders(header: String, code: TokenError.Code) async throws {
    await expectRefused(try Self.token(header: header), code)
  }

  @Test(
    "texts that are no tokens",
    arguments: ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.e30=", "é.e30.e30", "e30.e31.e30"])
  func noTokens(text: String) async throws {
    await expectRefused(text, .malformed)
  }

  @Test func `a token without signature is refused`() async throws {
    let parts = try Self.token().split(separator: ".")
    await expectRefused("\(parts[0]).\(parts[1]).", .signature)
  }

  @Test func `a token over the size limit is refused before it is read`() async throws {
    await expectRefused(String(repeating: "a", count: 16_385), .tooLarge)
  }

  @Test func `an RSA key does not serve as an HMAC secret`() async throws {
    let modulus = Base64URL.encode([UInt8](repeating: 0xAB, count: 256))
    let keys =
      "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"dev\",\"n\":\"\(modulus)\",\"e\":\"AQAB\"}]}"
    let verifier = try Self.verifier(keys: keys)
    await #expect { _ = try await verifier.verify(try Self.token(), now: Self.now) } throws: {
      ($0 as? TokenError)?.code == .algorithm
    }
  }

  private func expectRefused(_ token: String, _ code: TokenError.Code) async {
    await #expect { _ = try await Self.verifier().verify(token, now: Self.now) } throws: {
      ($0 as? TokenError)?.code == code
    }
  }
}
