import HTTPTransport
import SQLiteReplica
import SyncProtocol

/// Why a replica is not in step with its gateway.
public struct SyncFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// Where the trouble is.
  public enum Kind: Sendable, Equatable {
    /// The gateway cannot be reached, or the line broke.
    case network
    /// The gateway answered, and it was a refusal.
    case refused
    /// The application gave no token.
    case token
    /// The replica's own database, or lines that do not fit together.
    case replica
  }

  public let kind: Kind
  /// A stable code: the gateway's, or one of `SLUICE_CLIENT_…` and `SLUICE_REPLICA_…`.
  public let code: String
  /// A sentence for a person.
  public let message: String
  public let hint: String?

  public init(kind: Kind, code: String, message: String, hint: String? = nil) {
    self.kind = kind
    self.code = code
    self.message = message
    self.hint = hint
  }

  public var description: String { "\(code): \(message)" }
}

extension SyncFailure {
  init(_ body: ErrorBody) {
    self.init(kind: .refused, code: body.code, message: body.message, hint: body.hint)
  }

  init(_ error: SubscriptionError) {
    self.init(kind: .refused, code: error.code, message: error.message)
  }

  /// What an error of the transport, the replica or the protocol means.
  init(_ error: any Error) {
    switch error {
    case let failure as SyncFailure: self = failure
    case let error as TransportError:
      self.init(
        kind: .network, code: "SLUICE_CLIENT_" + error.code.rawValue.uppercasedWords,
        message: "The gateway cannot be reached or the line broke (\(error.message)).")
    case let error as ReplicaError:
      self.init(kind: .replica, code: error.code, message: error.message)
    case let error as ProtocolError:
      self.init(kind: .replica, code: error.code, message: error.message, hint: error.hint)
    case let error as ErrorBody: self.init(error)
    default:
      self.init(kind: .network, code: "SLUICE_CLIENT_FAILED", message: "The connection failed.")
    }
  }

  /// A refusal before the stream began.
  init(status: Int, body: [UInt8]) {
    if let body = ErrorBody(body: body) {
      self.init(body)
    } else {
      self.init(
        kind: .refused, code: "SLUICE_CLIENT_HTTP_\(status)",
        message: "The gateway, or something before it, answered with status \(status).")
    }
  }

  static let streamEnded = SyncFailure(
    kind: .network, code: "SLUICE_CLIENT_ENDED", message: "The gateway ended the stream.")
}

extension String {
  /// `timedOut` → `TIMED_OUT`
  fileprivate var uppercasedWords: String {
    reduce(into: "") { text, letter in
      if letter.isUppercase { text += "_" }
      text += letter.uppercased()
    }
  }
}
