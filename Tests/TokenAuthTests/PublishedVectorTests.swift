import Testing

@testable import TokenAuth

/// Signatures published in RFC 7515 (appendices A.1 and A.3) and RFC 8037 (appendix A.4).
struct PublishedVectorTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let key: String
    let token: String
    let algorithm: SignatureAlgorithm
  }

  static let joe =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

  static let vectors = [
    Vector(
      testDescription: "RFC 7515 A.1, HS256",
      key: """
        {"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}
        """,
      token: "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(joe)"
        + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
      algorithm: .hs256),
    Vector(
      testDescription: "RFC 7515 A.3, ES256",
      key: """
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",\
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
        """,
      token: "eyJhbGciOiJFUzI1NiJ9.\(joe)"
        + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
      algorithm: .es256),
    Vector(
      testDescription: "RFC 8037 A.4, Ed25519",
      key: """
        {"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
        """,
      token: "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
        + ".hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
      algorithm: .edDSA),
  ]

  @Test("a published signature is accepted, and a changed message is not", arguments: vectors)
  func published(_ vector: Vector) throws {
    let set = try JSONWebKeySet(
      json: Array("{\"keys\":[\(vector.key)]}".utf8), origin: .configuration)
    let key = try #require(set.keys.first)
    let parts = vector.token.split(separator: ".")
    let signature = try #require(Base64URL.decode(parts[2]))
    var message = Array("\(parts[0]).\(parts[1])".utf8)
    #expect(key.isValid(signature, of: message, algorithm: vector.algorithm))
    message[message.count - 1] ^= 1
    #expect(!key.isValid(signature, of: message, algorithm: vector.algorithm))
  }

  @Test("no key accepts an algorithm of another kind of key", arguments: vectors)
  func otherKinds(_ vector: Vector) throws {
    let set = try JSONWebKeySet(
      json: Array("{\"keys\":[\(vector.key)]}".utf8), origin: .configuration)
    let key = try #require(set.keys.first)
    let kind = vector.algorithm.rawValue.prefix(2)
    for other in SignatureAlgorithm.allCases where other.rawValue.prefix(2) != kind {
      #expect(!key.accepts(other))
    }
  }
}
