internal import BucketStorage
internal import Postgres
package import SyncProtocol

/// The errors that streams and routes answer with.
///
/// What the database said is never passed on: it may contain data.
package enum ServiceErrors {
  package static let historyLost = ErrorBody(
    code: "SLUICE_HISTORY_LOST",
    message: "The stream cannot be continued without looking at its positions again.",
    hint: "Connect again; what still holds is not downloaded anew.")

  package static let database = ErrorBody(
    code: "SLUICE_DATABASE_UNAVAILABLE", message: "The database could not be asked.",
    hint: "Connect again in a moment; the stream goes on where it ended.")

  package static let internalFault = ErrorBody(
    code: "SLUICE_INTERNAL", message: "The gateway failed to answer.",
    hint: "The gateway's log tells why.")

  /// What a client may know about `error`.
  package static func body(for error: any Error) -> ErrorBody {
    switch error {
    case let error as ErrorBody: error
    case let error as ProtocolError: ErrorBody(error)
    case is PostgresError: database
    case let error as StorageError:
      ErrorBody(code: error.code.name, message: error.message, hint: error.hint)
    default: internalFault
    }
  }
}
