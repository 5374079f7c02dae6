import SyncRules

/// Says what is wrong with a rules file.
enum CheckCommand: Subcommand {
  static let description = CommandDescription(
    name: "check", summary: "Check a rules file, against a database if one is named.",
    arguments: [.init(name: "RULES", help: "the rules file")],
    options: [
      .database, .config, .format,
      .flag(
        "--test",
        "run the tests beside the rules, in a throw-away database on the server of --database"),
      .value("--tests", "FILE", "the tests, if they are not in RULES.test.yaml"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    if arguments.has("--test") || arguments["--tests"] != nil {
      return try await runTests(arguments, console)
    }
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

  private static func runTests(
    _ arguments: Arguments, _ console: Console
  ) async throws -> ExitStatus {
    guard arguments["--database"] != nil || arguments["--config"] != nil else {
      throw UsageError(message: "--test needs a server to run on: --database URL")
    }
    let rules = arguments.words[0]
    let suffix = [".yaml", ".yml"].first { rules.hasSuffix($0) } ?? ""
    let path = arguments["--tests"] ?? "\(rules.dropLast(suffix.count)).test.yaml"
    let (tests, diagnostics) = try RulesTestFile.read(path: path)
    if !diagnostics.isEmpty {
      console.error(DiagnosticFormatter(file: tests.file).text(diagnostics).trimmingEnd)
      guard !diagnostics.hasErrors else { return .failed }
    }
    let report = try await RulesTestRun(
      tests: tests, rulesPath: rules, access: DatabaseAccess(arguments), console: console
    ).run()
    if arguments.wantsJSON {
      try console.print(json: report)
    } else {
      console.print(report.text)
    }
    return report.failures == 0 ? .done : .failed
  }
}
