import Foundation

/// Base64 with the URL alphabet and without padding (RFC 4648 section 5, as RFC 7515 uses it).
package enum Base64URL {
  /// The bytes that `text` stands for, or nil when it holds a character outside the alphabet, padding, or bits that no encoder
  /// leaves set: a token has one spelling only.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var standard = String(text)
    guard standard.utf8.allSatisfy(isInAlphabet) else { return nil }
    standard = standard.replacingOccurrences(of: "-", with: "+")
      .replacingOccurrences(of: "_", with: "/")
    standard += String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
    guard let data = Data(base64Encoded: standard) else { return nil }
    let bytes = [UInt8](data)
    return encode(bytes) == String(text) ? bytes : nil
  }

  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString()
      .replacingOccurrences(of: "+", with: "-")
      .replacingOccurrences(of: "/", with: "_")
      .replacingOccurrences(of: "=", with: "")
  }

  private static func isInAlphabet(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
