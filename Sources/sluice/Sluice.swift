import Foundation
import SyncRules

/// The gateway's command: finds the subcommand, runs it, and turns what it says into an exit status.
@main
struct Sluice {
  static let subcommands: [any Subcommand.Type] = [
    CheckCommand.self, ExplainCommand.self, InstallCommand.self, UninstallCommand.self,
    DeployCommand.self, ServeCommand.self, StatusCommand.self, VerifyCommand.self,
    WhyCommand.self, TokenCommand.self, DemoCommand.self,
  ]

  static func main() async {
    let status = await run(Array(CommandLine.arguments.dropFirst()), Console())
    exit(status.rawValue)
  }

  static func run(_ words: [String], _ console: Console) async -> ExitStatus {
    guard let name = words.first else {
      console.error(help)
      return .wrongUsage
    }
    if ["help", "--help", "-h"].contains(name) {
      console.print(help)
      return .done
    }
    guard let command = subcommands.first(where: { $0.description.name == name }) else {
      let names = subcommands.map { $0.description.name }
      let guess = Suggestion.nearest(to: name, among: names).map { "; did you mean \($0)?" } ?? ""
      console.error("sluice: unknown command \(name)\(guess)")
      return .wrongUsage
    }
    do {
      return try await execute(command, Array(words.dropFirst()), console)
    } catch {
      return report(error, of: name, console)
    }
  }

  private static func execute(
    _ command: any Subcommand.Type, _ words: [String], _ console: Console
  ) async throws -> ExitStatus {
    let description = command.description
    let arguments = try ArgumentParser.parse(words, for: description)
    if arguments.wantsHelp {
      console.print(description.help)
      return .done
    }
    return try await command.run(arguments, console)
  }

  private static func report(
    _ error: any Error, of command: String, _ console: Console
  ) -> ExitStatus {
    if let error = error as? UsageError {
      console.error("sluice \(command): \(error.message)\nsee: sluice \(command) --help")
      return .wrongUsage
    }
    let failure = CommandFailure.explaining(error)
    console.error("sluice \(command): \(failure.message)")
    if let hint = failure.hint { console.error(hint) }
    return failure.status
  }

  private static var help: String {
    let width = subcommands.map { $0.description.name.count }.max() ?? 0
    let list = subcommands.map { command in
      let name = command.description.name
      return "  " + name + String(repeating: " ", count: width - name.count + 2)
        + command.description.summary
    }
    return """
      usage: sluice COMMAND [options]

      Keeps slices of a PostgreSQL database up to date on devices.

      \(list.joined(separator: "\n"))

      sluice COMMAND --help tells what a command takes.
      """
  }
}
