import Foundation
import SQLGeneration
import SyncRules

/// From a rules file to SQL, with everything that was found on the way.
struct RulesPipeline {
  var file: SourceFile
  var rules: RuleSet?
  var plan: SyncPlan?
  var compiled: CompiledRules?
  var diagnostics: [Diagnostic]

  /// Reads and compiles; without a catalog only what the file itself shows is checked.
  static func run(path: String, catalog: Catalog?) throws(CommandFailure) -> RulesPipeline {
    let text: String
    do {
      text = try String(contentsOfFile: path, encoding: .utf8)
    } catch {
      throw CommandFailure(.wrongUsage, "\(path) cannot be read as UTF-8 text")
    }
    return run(text: text, name: path, catalog: catalog)
  }

  static func run(text: String, name: String, catalog: Catalog?) -> RulesPipeline {
    let (rules, found) = RulesReader.read(text, fileName: name)
    var result = RulesPipeline(
      file: SourceFile(name: name, text: text), rules: rules, diagnostics: found)
    guard let rules, !found.hasErrors else { return result }
    let (plan, more) = PlanCompiler.compile(rules, catalog)
    result.diagnostics += more
    result.plan = plan
    guard let plan, !more.hasErrors, catalog != nil else { return result }
    result.compiled = SQLGenerator.compile(plan)
    return result
  }

  /// The compiled rules, or the failure that lists what is wrong.
  func requireCompiled(_ console: Console) throws(CommandFailure) -> CompiledRules {
    if !diagnostics.isEmpty {
      console.error(DiagnosticFormatter(file: file).text(diagnostics).trimmingEnd)
    }
    guard let compiled else {
      throw CommandFailure(.failed, "the rules have errors")
    }
    return compiled
  }
}

extension String {
  /// The text without the line breaks that end it.
  var trimmingEnd: String {
    var text = self[...]
    while text.last?.isNewline == true { text = text.dropLast() }
    return String(text)
  }
}
