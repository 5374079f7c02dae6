import BucketStorage
import Postgres

/// Puts the `sluice` schema into the database.
enum InstallCommand: Subcommand {
  static let description = CommandDescription(
    name: "install", summary: "Put the sluice schema into the database, or bring it up to date.",
    options: [
      .config, .database, .flag("--print", "print the SQL instead of running it"),
      .value("--role", "ROLE", "also let this role run the gateway"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let installer = Installer()
    let grants = arguments["--role"].map { installer.grants(to: $0) }
    if arguments.has("--print") {
      console.print(installer.script)
      if let grants { console.print(grants) }
      return .done
    }
    let steps = try await DatabaseAccess(arguments).withConnection { connection in
      let steps = try await installer.install(connection)
      if let grants { try await connection.execute(grants) }
      return steps
    }
    console.print(
      steps.isEmpty ? "already up to date" : "installed: " + steps.joined(separator: ", "))
    return .done
  }
}

/// Takes the `sluice` schema away.
enum UninstallCommand: Subcommand {
  static let description = CommandDescription(
    name: "uninstall",
    summary:
      "Remove the sluice schema with its triggers. The application's tables stay as they are.",
    options: [
      .config, .database, .flag("--print", "print the SQL instead of running it"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let installer = Installer()
    if arguments.has("--print") {
      console.print(installer.uninstallScript)
      return .done
    }
    try await DatabaseAccess(arguments).withConnection { try await installer.uninstall($0) }
    console.print("uninstalled")
    return .done
  }
}
