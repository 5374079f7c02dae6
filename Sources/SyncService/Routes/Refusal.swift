internal import BucketStorage
internal import HTTPServer
internal import Postgres
package import SyncProtocol
internal import Synchronization
internal import TokenAuth

/// A request that is answered with an error: the status, what to say, and what else to tell.
package struct Refusal: Error, Sendable {
  package var status: Int
  package var body: ErrorBody
  package var headers: [(String, String)]

  package init(status: Int, _ body: ErrorBody, headers: [(String, String)] = []) {
    self.status = status
    self.body = body
    self.headers = headers
  }

  /// What a client may know about an error that nobody expected, or about its own mistake.
  init(for error: any Error) {
    let body = ServiceErrors.body(for: error)
    let status =
      switch error {
      case is ProtocolError: 400
      case is PostgresError: 503
      case let error as StorageError: error.code == .tooManyBuckets ? 422 : 503
      default: 500
      }
    self.init(status: status, body, headers: status == 503 ? [("Retry-After", "2")] : [])
  }

  init(unauthorized error: TokenError) {
    let body = ErrorBody(code: error.code.rawValue, message: error.message)
    if error.code == .keySet {
      // Our fault, or that of the server that has the keys.
      self.init(status: 503, body, headers: [("Retry-After", "5")])
      return
    }
    self.init(
      status: 401, body,
      headers: [("WWW-Authenticate", "Bearer error=\"invalid_token\"")])
  }

  static let noToken = Refusal(
    status: 401,
    ErrorBody(
      code: "SLUICE_AUTH_MISSING", message: "The request carries no token.",
      hint: "Send the header Authorization: Bearer <token>."),
    headers: [("WWW-Authenticate", "Bearer")])

  static let noRoute = Refusal(
    status: 404, ErrorBody(code: "SLUICE_NO_ROUTE", message: "There is nothing at this path."))

  static let noBucket = Refusal(
    status: 404,
    ErrorBody(
      code: "SLUICE_NO_BUCKET", message: "The token grants no bucket of this name.",
      hint: "GET /v1/buckets lists those that it grants."))

  static let positionGone = Refusal(
    status: 410,
    ErrorBody(
      code: "SLUICE_POSITION_GONE",
      message: "The bucket cannot be followed from this position any more.",
      hint: "Drop what you hold of this bucket and read it without \"after\"."))

  static func badParameter(_ message: String) -> Refusal {
    Refusal(status: 400, ErrorBody(code: "SLUICE_REQUEST_PARAMETER", message: message))
  }

  static func method(allowed: String) -> Refusal {
    Refusal(
      status: 405,
      ErrorBody(
        code: "SLUICE_METHOD",
        message: "Only \(allowed.replacing(", ", with: " and ")) can be used at this path."),
      headers: [("Allow", allowed)])
  }

  static func noMemory(retryAfter: Int) -> Refusal {
    Refusal(
      status: 503,
      ErrorBody(
        code: "SLUICE_BUSY", message: "Too many large rows are on their way to others.",
        hint: "Come back after the time in Retry-After."),
      headers: [("Retry-After", "\(retryAfter)")])
  }

  static func overloaded(_ refusal: AdmissionGate.Refusal, retryAfter: Int) -> Refusal {
    let body =
      switch refusal {
      case .tooManyStreams:
        ErrorBody(code: "SLUICE_TOO_MANY_STREAMS", message: "The gateway has no stream to spare.")
      case .tooManyStarting:
        ErrorBody(
          code: "SLUICE_BUSY", message: "Too many clients are starting at once.",
          hint: "Come back after the time in Retry-After.")
      case .stopping:
        ErrorBody(code: "SLUICE_STOPPING", message: "The gateway is restarting.")
      }
    return Refusal(status: 503, body, headers: [("Retry-After", "\(retryAfter)")])
  }
}

extension HTTPResponder {
  func respond(_ refusal: Refusal) async throws {
    var headers: HTTPHeaders = ["Content-Type": "application/json", "Cache-Control": "no-store"]
    for (name, value) in refusal.headers { headers.add(name, value) }
    try await respond(
      status: refusal.status, headers: headers, body: refusal.body.encodedLine())
  }

  func respond(json: [UInt8]) async throws {
    try await respond(json: SharedBytes(json))
  }

  func respond(json: SharedBytes) async throws {
    try await respond(
      status: 200,
      headers: ["Content-Type": "application/json", "Cache-Control": "no-store"], body: json)
  }
}

/// Something that happens once.
final class Flag: Sendable {
  private let value = Atomic<Bool>(false)

  var isSet: Bool { value.load(ordering: .acquiring) }

  /// True for the call that set it.
  func set() -> Bool {
    !value.exchange(true, ordering: .acquiringAndReleasing)
  }
}
