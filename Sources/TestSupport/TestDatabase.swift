package import EventLoop
package import Postgres

/// A database of a test's own, in a `PostgresCluster`.
package final class TestDatabase: Sendable {
  package let name: String
  /// A URL for libpq.
  package let connectionString: String
  /// The loop of connections for which the test has none of its own.
  package static let loop = EventLoop(name: "test database")

  private let cluster: PostgresCluster

  init(cluster: PostgresCluster, name: String) {
    self.cluster = cluster
    self.name = name
    connectionString = cluster.connectionString(database: name)
  }

  /// Connects to the database.
  package func connect(
    on loop: EventLoop = TestDatabase.loop, settings: [String: String] = [:]
  ) async throws -> PostgresConnection {
    try await PostgresConnection.connect(configuration(settings: settings), on: loop)
  }

  package func configuration(settings: [String: String] = [:]) -> PostgresConfiguration {
    PostgresConfiguration(
      connectionString: connectionString, settings: settings, connectTimeout: .seconds(30))
  }

  /// Drops the database, and with it whatever is connected to it.
  package func drop() async throws {
    try await cluster.administer("DROP DATABASE IF EXISTS \"\(name)\" WITH (FORCE)")
  }
}

/// Lends a new database of the shared cluster to `body`, and drops it afterwards.
///
/// ```swift
/// try await withDatabase { database in
///   let connection = try await database.connect()
/// }
/// ```
package func withDatabase<R>(
  in cluster: PostgresCluster = .shared, _ body: (TestDatabase) async throws -> R
) async throws -> R {
  let database = try await cluster.createDatabase()
  do {
    let result = try await body(database)
    try await database.drop()
    return result
  } catch {
    // The test's own error is the one to see; the cluster goes at exit anyway.
    try? await database.drop()
    throw error
  }
}
