import Foundation
import Testing

@testable import TokenAuth

/// Tokens signed by the `openssl` command, an implementation that is not ours.
struct OpenSSLSignatureTests {
  @Test("RSA signatures of the openssl command are accepted", arguments: [256, 384, 512])
  func rsa(bits: Int) async throws {
    let folder = try Folder()
    defer { folder.remove() }
    try folder.openssl(
      "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "key")
    let modulus = try folder.openssl("rsa", "-in", "key", "-noout", "-modulus")
    let hexadecimal = String(decoding: modulus, as: UTF8.self).dropFirst("Modulus=".count)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let n = Base64URL.encode(try bytes(hexadecimal: hexadecimal))
    try await expectAccepted(
      key: "{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"\(n)\",\"e\":\"AQAB\"}", algorithm: "RS\(bits)",
      digest: "-sha\(bits)", in: folder
    ) { $0 }
  }

  @Test(
    "ECDSA signatures of the openssl command are accepted",
    arguments: [
      (256, "P-256", 32), (384, "P-384", 48), (512, "P-521", 66),
    ])
  func elliptic(bits: Int, curve: String, length: Int) async throws {
    let folder = try Folder()
    defer { folder.remove() }
    try folder.openssl(
      "genpkey", "-quiet", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(curve)", "-out",
      "key")
    // The encoded public key ends in the uncompressed point 04 ‖ x ‖ y.
    let encoded = try folder.openssl("pkey", "-in", "key", "-pubout", "-outform", "DER")
    let x = Base64URL.encode(encoded.suffix(2 * length).prefix(length))
    let y = Base64URL.encode(encoded.suffix(length))
    try await expectAccepted(
      key: "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"\(curve)\",\"x\":\"\(x)\",\"y\":\"\(y)\"}",
      algorithm: "ES\(bits)", digest: "-sha\(bits)", in: folder
    ) { try concatenated($0, length: length) }
  }

  private func expectAccepted(
    key: String, algorithm: String, digest: String, in folder: Folder,
    convert: ([UInt8]) throws -> [UInt8]
  ) async throws {
    let header = Base64URL.encode(Array("{\"alg\":\"\(algorithm)\",\"kid\":\"k\"}".utf8))
    let claims = Base64URL.encode(
      Array("{\"sub\":\"ann\",\"aud\":\"shop\",\"iat\":1000,\"exp\":2000}".utf8))
    try Data("\(header).\(claims)".utf8).write(to: folder.url.appending(path: "message"))
    let signed = try folder.openssl("dgst", digest, "-sign", "key", "message")
    let signature = Base64URL.encode(try convert(signed))
    let verifier = TokenVerifier(
      sources: [
        FixedKeys(
          try JSONWebKeySet(json: Array("{\"keys\":[\(key)]}".utf8), origin: .configuration))
      ],
      policy: TokenVerifier.Policy(audience: ["shop"]))
    let now = Date(timeIntervalSince1970: 1500)
    let token = try await verifier.verify("\(header).\(claims).\(signature)", now: now)
    #expect(token.subject == "ann")
    await #expect(throws: TokenError(.signature, "The token's signature is wrong.")) {
      let forged = Base64URL.encode(
        Array("{\"sub\":\"bob\",\"aud\":\"shop\",\"iat\":1000,\"exp\":2000}".utf8))
      _ = try await verifier.verify("\(header).\(forged).\(signature)", now: now)
    }
  }

  /// R ‖ S of a DER signature, as RFC 7518 section 3.4 wants it.
  private func concatenated(_ encoded: [UInt8], length: Int) throws -> [UInt8] {
    var rest = encoded[...]
    func read(_ tag: UInt8) throws -> ArraySlice<UInt8> {
      try #require(rest.first == tag)
      rest = rest.dropFirst()
      var count = Int(rest.removeFirst())
      if count == 0x81 { count = Int(rest.removeFirst()) }
      let content = rest.prefix(count)
      rest = rest.dropFirst(count)
      return content
    }
    rest = try read(0x30)
    func coordinate() throws -> [UInt8] {
      let magnitude = Array(try read(0x02).drop { $0 == 0 })
      return [UInt8](repeating: 0, count: length - magnitude.count) + magnitude
    }
    return try coordinate() + coordinate()
  }

  private func bytes(hexadecimal text: String) throws -> [UInt8] {
    let digits = Array(text)
    return try stride(from: 0, to: digits.count, by: 2).map {
      try #require(UInt8(String(digits[$0...($0 + 1)]), radix: 16))
    }
  }
}

/// A folder of one test's keys.
private struct Folder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  func remove() { #expect(throws: Never.self) { try FileManager.default.removeItem(at: url) } }

  @discardableResult
  func openssl(_ arguments: String...) throws -> [UInt8] {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = arguments
    process.currentDirectoryURL = url
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return Array(bytes)
  }
}
