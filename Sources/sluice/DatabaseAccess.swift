import BucketStorage
import EventLoop
import Postgres
import SyncRules
import SyncService

/// The database that a command works on.
struct DatabaseAccess: Sendable {
  let configuration: ServiceConfiguration
  let loop = EventLoop(name: "postgres")

  init(_ configuration: ServiceConfiguration) {
    self.configuration = configuration
  }

  init(_ arguments: Arguments) throws {
    configuration = try ConfigurationAccess.readWithDatabase(arguments)
  }

  /// Whatever others put into schemas of the role's search path, commands do not call it.
  func postgres(_ settings: [String: String] = [:]) -> PostgresConfiguration {
    PostgresConfiguration(
      connectionString: configuration.database,
      settings: settings.merging(["search_path": "pg_catalog"]) { given, _ in given })
  }

  /// A pool for the reading side.
  func pool(size: Int = 2) -> PostgresPool {
    PostgresPool(configuration: postgres(BucketStore.settings), loop: loop, size: size)
  }

  /// Lends a connection that is closed afterwards.
  func withConnection<R>(
    _ settings: [String: String] = [:], _ body: (PostgresConnection) async throws -> R
  ) async throws -> R {
    let connection = try await PostgresConnection.connect(postgres(settings), on: loop)
    do {
      let result = try await body(connection)
      await connection.close()
      return result
    } catch {
      await connection.close()
      throw error
    }
  }

  func catalog() async throws -> Catalog {
    try await withConnection { try await CatalogReader().read($0) }
  }

  /// The path of the rules that were named, on the command line or in the configuration.
  func rulesPath(_ arguments: Arguments) throws -> String {
    guard let path = arguments.words.first ?? configuration.rules else {
      throw UsageError(message: "no rules are named: give RULES, or rules in the configuration")
    }
    return path
  }
}
