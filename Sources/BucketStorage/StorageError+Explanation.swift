internal import Postgres

extension StorageError {
  /// What an error of PostgreSQL means to whoever runs the gateway; any other error is answered as it is.
  ///
  /// The sentences hold no values of rows: of PostgreSQL's own messages only those are passed on that
  /// name things.
  package static func explaining(_ error: any Error) -> any Error {
    if let failure = error as? EvaluationFailure { return explaining(failure.error) }
    guard let error = error as? PostgresError, let (code, message, hint) = explanation(error) else {
      return error
    }
    return StorageError(code, message, hint: hint, underlying: error)
  }

  private static func explanation(_ error: PostgresError) -> (Code, String, String)? {
    switch error.code {
    case "53100":
      (
        .diskFull, "PostgreSQL's disk is full.",
        "Make room; nothing is lost, and the gateway goes on by itself."
      )
    case "53300":
      (
        .tooManyConnections, "PostgreSQL has no connection left for the gateway.",
        "Raise max_connections or the limit of the role or the database, or lower database_connections."
      )
    case let code where code.hasPrefix("53"):
      (
        .resources, "PostgreSQL lacks memory or another resource (\(code)).",
        "PostgreSQL's log tells which."
      )
    case "42501":
      (
        .notPermitted, "The gateway's role lacks a right: \(error.message).",
        "`sluice install --print --role ROLE` shows the rights that it needs."
      )
    case let code where code.hasPrefix("28"):
      (
        .loginRefused, "PostgreSQL refuses the gateway's login (\(code)).",
        "Look at the configured database, the role's password and LOGIN, and pg_hba.conf."
      )
    case "3D000":
      (
        .noDatabase, "PostgreSQL has no database of the configured name.",
        "Restore it, or change database in the configuration."
      )
    case "42P01" where error.message.contains("\"sluice."), "3F000":
      (
        .notInstalled, "The database has no schema of Sluice's, or an older one.",
        "Run `sluice install`."
      )
    case "55P03":
      (
        .lockTimeout, "A table is locked by another session for longer than the gateway waits.",
        "pg_locks and pg_stat_activity show by whom."
      )
    case "57014":
      (
        .statementTimeout,
        "PostgreSQL cancelled a statement, at an administrator's or a time limit's wish.",
        "Look at statement_timeout, and at what else keeps PostgreSQL busy."
      )
    case "25006":
      (
        .readOnly, "PostgreSQL takes no writes: it is a standby, or read-only.",
        "Point the gateway at the primary, or start it with --follow."
      )
    case let code where error.kind == .connection || code.hasPrefix("57P"):
      (
        .databaseUnavailable,
        "PostgreSQL does not answer\(code.isEmpty ? "" : " (\(code))").",
        "Look whether it runs; the gateway connects again by itself."
      )
    default: nil
    }
  }
}
