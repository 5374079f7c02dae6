import SyncRules

/// What was given on the command line of one subcommand.
struct Arguments: Sendable, Equatable {
  var words: [String] = []
  var values: [String: String] = [:]
  /// The values of options that may be given more than once, in their order.
  var lists: [String: [String]] = [:]
  var flags: Set<String> = []
  var wantsHelp = false

  subscript(_ name: String) -> String? { values[name] }

  func all(_ name: String) -> [String] { lists[name] ?? [] }

  func has(_ flag: String) -> Bool { flags.contains(flag) }

  var wantsJSON: Bool { values["--format"] == "json" }
}

/// The command line is not one that the command understands.
struct UsageError: Error, Equatable {
  var message: String
}

/// Reads words and options in any order: `--name value`, `--name=value`, and `--` before words that
/// begin with a dash.
enum ArgumentParser {
  static func parse(
    _ given: [String], for command: CommandDescription
  ) throws(UsageError) -> Arguments {
    var result = Arguments()
    var rest = given[...]
    var isLiteral = false
    while let word = rest.popFirst() {
      guard !isLiteral, word.hasPrefix("-"), word != "-" else {
        result.words.append(word)
        continue
      }
      if word == "--" {
        isLiteral = true
      } else if word == "--help" || word == "-h" {
        result.wantsHelp = true
      } else {
        try parse(option: word, &rest, for: command, into: &result)
      }
    }
    if result.wantsHelp { return result }
    let required = command.arguments.count { $0.isRequired }
    if result.words.count < required {
      throw UsageError(message: "\(command.arguments[result.words.count].name) is missing")
    }
    if result.words.count > command.arguments.count {
      throw UsageError(message: "\"\(result.words[command.arguments.count])\" is one word too many")
    }
    return result
  }

  private static func parse(
    option word: String, _ rest: inout ArraySlice<String>, for command: CommandDescription,
    into result: inout Arguments
  ) throws(UsageError) {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    guard let option = command.options.first(where: { $0.name == name }) else {
      let names = command.options.map(\.name) + ["--help"]
      let guess = Suggestion.nearest(to: name, among: names).map { "; did you mean \($0)?" } ?? ""
      throw UsageError(message: "unknown option \(name)\(guess)")
    }
    guard option.value != nil else {
      guard parts.count == 1 else { throw UsageError(message: "\(name) takes no value") }
      result.flags.insert(name)
      return
    }
    guard result.values[name] == nil else {
      throw UsageError(message: "\(name) is given twice")
    }
    // A word with two dashes is the next option; as a value it takes the form with `=`.
    let isOption = rest.first?.hasPrefix("--") == true
    guard let value = parts.count == 2 ? String(parts[1]) : isOption ? nil : rest.popFirst() else {
      throw UsageError(message: "\(name) needs a value")
    }
    guard option.choices.isEmpty || option.choices.contains(value) else {
      throw UsageError(message: "\(name) is one of \(option.choices.joined(separator: ", "))")
    }
    if option.isRepeatable {
      result.lists[name, default: []].append(value)
    } else {
      result.values[name] = value
    }
  }
}
