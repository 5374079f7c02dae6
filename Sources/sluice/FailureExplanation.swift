import BucketStorage
import HTTPServer
import Postgres
import SyncService
import TokenAuth

extension CommandFailure {
  /// What to tell the person who typed the command, and how to end.
  static func explaining(_ error: any Error) -> CommandFailure {
    switch error {
    case let failure as CommandFailure:
      return failure
    case let error as ConfigurationError:
      return CommandFailure(
        .wrongUsage, (["the configuration has errors"] + error.problems).joined(separator: "\n"))
    case let error as PostgresError:
      let status: ExitStatus = error.isConnectionFailure ? .unavailable : .failed
      let known = StorageError.explaining(error) as? StorageError
      return CommandFailure(
        status, "the database: \(error.message)" + (known.map { " [\($0.code.name)]" } ?? ""),
        hint: error.hint ?? known?.hint)
    case let error as StorageError:
      let isMissing = error.code == .notInstalled || error.code == .noRules
      return CommandFailure(
        isMissing ? .unavailable : .failed, "\(error.message) [\(error.code.name)]",
        hint: error.hint)
    case let error as TokenError:
      return CommandFailure(.wrongUsage, error.description)
    default:
      return CommandFailure(.failed, String(describing: error))
    }
  }
}
