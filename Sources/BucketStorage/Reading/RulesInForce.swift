package import Postgres

/// The rules that a database is served by, as they were deployed.
package enum RulesInForce {
  /// The text of the rules file; nil when none was deployed yet.
  package static func text(_ connection: PostgresConnection) async throws -> String? {
    try await connection.query("SELECT source FROM sluice.generations WHERE state = 'active'")
      .firstString(0)
  }
}
