import SyncRules

/// Says what is wrong with a rules file.
enum CheckCommand: Subcommand {
  static let description = CommandDescription(
    name: "check", summary: "Check a rules file, against a database if one is named.",
    arguments: [.init(name: "RULES", help: "the rules file")],
    options: [.database, .config, .format])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    var catalog: Catalog?
    if arguments["--database"] != nil || arguments["--config"] != nil {
      catalog = try await DatabaseAccess(arguments).catalog()
    }
    let result = try RulesPipeline.run(path: arguments.words[0], catalog: catalog)
    let formatter = DiagnosticFormatter(file: result.file)
    if arguments.wantsJSON {
      console.print(formatter.json(result.diagnostics))
    } else if result.diagnostics.isEmpty {
      console.print("\(arguments.words[0]): no findings")
    } else {
      console.print(formatter.text(result.diagnostics).trimmingEnd)
    }
    return result.diagnostics.hasErrors ? .failed : .done
  }
}
