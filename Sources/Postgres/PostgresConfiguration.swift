/// Where a connection goes and how it begins.
package struct PostgresConfiguration: Sendable {
  /// A URL or a keyword string, as libpq reads it.
  package var connectionString: String
  /// The database to go to in the place of the connection string's.
  package var database: String?
  /// Settings given to the session before its first query.
  package var settings: [String: String]
  /// The name shown in `pg_stat_activity`, unless the connection string has one.
  package var applicationName: String
  /// How long connecting may take.
  package var connectTimeout: Duration
  /// How long a cancelled query may take to end before its connection is given up.
  package var cancelTimeout: Duration

  package init(
    connectionString: String, database: String? = nil, settings: [String: String] = [:],
    applicationName: String = "sluice", connectTimeout: Duration = .seconds(10),
    cancelTimeout: Duration = .seconds(10)
  ) {
    self.connectionString = connectionString
    self.database = database
    self.settings = settings
    self.applicationName = applicationName
    self.connectTimeout = connectTimeout
    self.cancelTimeout = cancelTimeout
  }
}
