import Foundation
import Postgres
import SQLGeneration

/// A database on the server of another, that is gone when the work is done.
struct ThrowAwayDatabase: Sendable {
  let name: String
  private let access: DatabaseAccess

  /// Lends a new, empty database. The role needs the right to create one.
  static func lend<R>(
    _ access: DatabaseAccess, _ body: (ThrowAwayDatabase) async throws -> R
  ) async throws -> R {
    let suffix = String(UInt64.random(in: .min ... .max), radix: 16)
    let database = ThrowAwayDatabase(name: "sluice_check_\(suffix)", access: access)
    do {
      try await database.administer("CREATE DATABASE \(SQLIdentifier(database.name))")
    } catch let error as PostgresError where error.code == "42501" {
      throw CommandFailure(
        .failed, "the role may not create databases, and tests run in one of their own",
        hint: "Name a server for tests with --database, or ALTER ROLE … CREATEDB.")
    }
    do {
      let result = try await body(database)
      try await database.drop()
      return result
    } catch {
      // The first error is the one to tell.
      try? await database.drop()
      throw error
    }
  }

  func configuration(_ settings: [String: String] = [:]) -> PostgresConfiguration {
    var configuration = access.postgres(settings)
    configuration.database = name
    return configuration
  }

  private func drop() async throws {
    try await administer("DROP DATABASE IF EXISTS \(SQLIdentifier(name)) WITH (FORCE)")
  }

  private func administer(_ sql: String) async throws {
    try await access.withConnection { try await $0.execute(sql) }
  }
}
