/// How the tests of a rules file went.
struct RulesTestReport: Encodable {
  struct Problem: Encodable {
    /// In the tests file, from 1.
    var line: Int
    var text: String
  }

  struct Outcome: Encodable {
    var name: String
    var line: Int
    /// Empty when the test passed.
    var problems: [Problem]
  }

  var file: String
  var outcomes: [Outcome] = []

  init(file: String) {
    self.file = file
  }

  var failures: Int { outcomes.count { !$0.problems.isEmpty } }

  var text: String {
    var lines: [String] = []
    for outcome in outcomes {
      lines.append("\(outcome.problems.isEmpty ? "ok    " : "FAILED") \(outcome.name)")
      lines += outcome.problems.map { "         \(file):\($0.line): \($0.text)" }
    }
    let count = "\(outcomes.count) \(outcomes.count == 1 ? "test" : "tests")"
    lines.append(failures == 0 ? "\(count), all passed" : "\(count), \(failures) failed")
    return lines.joined(separator: "\n")
  }
}
