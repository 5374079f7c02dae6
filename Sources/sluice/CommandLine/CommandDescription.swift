/// What a subcommand takes, from which its parser and its help are made.
struct CommandDescription: Sendable {
  /// A word or a `--name` that may be given.
  struct Option: Sendable {
    var name: String
    /// The name of its value in the help; nil for a switch.
    var value: String?
    var help: String
    /// The values that are accepted; empty for any.
    var choices: [String] = []
    /// Whether it may be given more than once.
    var isRepeatable = false

    static func flag(_ name: String, _ help: String) -> Option {
      Option(name: name, value: nil, help: help)
    }

    static func value(
      _ name: String, _ value: String, _ help: String, choices: [String] = []
    ) -> Option {
      Option(name: name, value: value, help: help, choices: choices)
    }

    static func list(_ name: String, _ value: String, _ help: String) -> Option {
      Option(name: name, value: value, help: help, isRepeatable: true)
    }
  }

  struct Argument: Sendable {
    var name: String
    var help: String
    var isRequired = true
  }

  var name: String
  var summary: String
  var arguments: [Argument] = []
  var options: [Option] = []

  /// The text of `--help`.
  var help: String {
    var usage = "usage: sluice \(name)"
    for argument in arguments {
      usage += argument.isRequired ? " \(argument.name)" : " [\(argument.name)]"
    }
    if !options.isEmpty { usage += " [options]" }
    var lines = [usage, "", summary]
    let all = arguments.map { ($0.name, $0.help) } + options.map { ($0.usage, $0.fullHelp) }
    let width = all.map(\.0.count).max() ?? 0
    if !all.isEmpty { lines.append("") }
    for (left, right) in all {
      lines.append("  " + left + String(repeating: " ", count: width - left.count + 2) + right)
    }
    return lines.joined(separator: "\n")
  }
}

extension CommandDescription.Option {
  fileprivate var usage: String { value.map { "\(name) \($0)" } ?? name }

  fileprivate var fullHelp: String {
    choices.isEmpty ? help : help + " (\(choices.joined(separator: ", ")))"
  }
}

extension CommandDescription.Option {
  static let config = Self.value("--config", "FILE", "the configuration file")
  static let database = Self.value(
    "--database", "URL", "the database, instead of the configured one")
  static let format = Self.value(
    "--format", "FORMAT", "how to print", choices: ["text", "json"])
}
