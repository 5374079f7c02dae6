/// A request that the server answers itself, before any handler.
struct HTTPRefusal: Error, Equatable {
  let status: Int
  let code: String
  let message: String

  static func badRequest(_ message: String) -> HTTPRefusal {
    HTTPRefusal(status: 400, code: "SLUICE_HTTP_BAD_REQUEST", message: message)
  }

  static let bodyTooLarge = HTTPRefusal(
    status: 413, code: "SLUICE_HTTP_BODY_TOO_LARGE", message: "the body exceeds the limit")
  static let targetTooLong = HTTPRefusal(
    status: 414, code: "SLUICE_HTTP_TARGET_TOO_LONG", message: "the request line exceeds the limit")
  static let headerTooLarge = HTTPRefusal(
    status: 431, code: "SLUICE_HTTP_HEADER_TOO_LARGE", message: "the headers exceed the limit")
  static let timeout = HTTPRefusal(
    status: 408, code: "SLUICE_HTTP_TIMEOUT", message: "the request did not arrive in time")
  static let codingUnknown = HTTPRefusal(
    status: 501, code: "SLUICE_HTTP_CODING", message: "only the transfer coding chunked is known")
  static let versionUnknown = HTTPRefusal(
    status: 505, code: "SLUICE_HTTP_VERSION", message: "only HTTP/1.1 and HTTP/1.0 are spoken")
  static let busy = HTTPRefusal(
    status: 503, code: "SLUICE_HTTP_BUSY", message: "too many connections; try again later")
  static let internalError = HTTPRefusal(
    status: 500, code: "SLUICE_HTTP_INTERNAL", message: "the request could not be answered")

  /// The body, as every error of the service looks, with the message as a sentence. The parts need no
  /// escapes.
  var body: [UInt8] {
    let sentence = message.prefix(1).uppercased() + message.dropFirst() + "."
    return Array("{\"error\":{\"code\":\"\(code)\",\"message\":\"\(sentence)\"}}\n".utf8)
  }
}
