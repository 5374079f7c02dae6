/// Why the storage refused.
package struct StorageError: Error, Sendable {
  /// Stable names, by which programs and operators tell refusals apart.
  package struct Code: Sendable, Hashable {
    package let name: String

    private init(_ name: String) { self.name = name }

    /// The database holds no `sluice` schema, or an older one.
    package static let notInstalled = Code("SLUICE_NOT_INSTALLED")
    /// No rules were deployed yet.
    package static let noRules = Code("SLUICE_NO_RULES")
    package static let rulesUnreadable = Code("SLUICE_RULES_UNREADABLE")
    /// A request may hold more buckets than a gateway serves at once.
    package static let tooManyBuckets = Code("SLUICE_TOO_MANY_BUCKETS")
    /// A table has no key by which its rows can be told apart.
    package static let noKey = Code("SLUICE_TABLE_WITHOUT_KEY")
    package static let unsuitableTable = Code("SLUICE_UNSUITABLE_TABLE")
    /// Another gateway took the lead.
    package static let notLeader = Code("SLUICE_NOT_LEADER")
    /// The role lacks a right.
    package static let notPermitted = Code("SLUICE_NOT_PERMITTED")
    /// A definition cannot be evaluated over a table as it is.
    package static let suspended = Code("SLUICE_DEFINITION_SUSPENDED")
    /// A row's JSON is larger than `RowSize.limit`.
    package static let rowTooLarge = Code("SLUICE_ROW_TOO_LARGE")
    /// The deployment was replaced by a later one.
    package static let superseded = Code("SLUICE_DEPLOYMENT_SUPERSEDED")
    /// PostgreSQL cannot be reached, stops or starts.
    package static let databaseUnavailable = Code("SLUICE_DATABASE_UNAVAILABLE")
    package static let diskFull = Code("SLUICE_DISK_FULL")
    package static let tooManyConnections = Code("SLUICE_TOO_MANY_CONNECTIONS")
    package static let resources = Code("SLUICE_DATABASE_RESOURCES")
    package static let loginRefused = Code("SLUICE_LOGIN_REFUSED")
    package static let noDatabase = Code("SLUICE_NO_DATABASE")
    package static let lockTimeout = Code("SLUICE_LOCK_TIMEOUT")
    package static let statementTimeout = Code("SLUICE_STATEMENT_TIMEOUT")
    package static let readOnly = Code("SLUICE_READ_ONLY")
  }

  package let code: Code
  package let message: String
  package let hint: String?
  package let underlying: (any Error)?

  package init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
  }
}

extension StorageError: CustomStringConvertible {
  package var description: String {
    "\(code.name): \(message)" + (hint.map { " \($0)" } ?? "")
  }
}
