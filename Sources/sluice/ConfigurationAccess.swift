import Foundation
import SyncService

/// The configuration that a command was given, from its file and the environment.
enum ConfigurationAccess {
  static func read(_ arguments: Arguments) throws -> ServiceConfiguration {
    let environment = ProcessInfo.processInfo.environment
    var reader = ConfigurationReader(environment: environment) {
      try String(contentsOfFile: $0, encoding: .utf8)
    }
    let file = arguments["--config"] ?? environment["SLUICE_CONFIG"]
    var configuration = try reader.read(file: file)
    if let database = arguments["--database"] { configuration.database = database }
    return configuration
  }

  /// The configuration, which must name a database.
  static func readWithDatabase(_ arguments: Arguments) throws -> ServiceConfiguration {
    let configuration = try read(arguments)
    guard !configuration.database.isEmpty else {
      throw UsageError(
        message: "no database is named: give --database, or database in the configuration")
    }
    return configuration
  }
}
