import Foundation
import SyncProtocol

/// The command line is not one that means something.
struct UsageError: Error {
  let message: String
}

/// The command line, read.
struct Arguments {
  enum Verb {
    case sync
    case watch
    case status
    case sql(String)
  }

  enum Format: String {
    case text
    case json
  }

  static let help = """
    sluice-replica keeps a copy of your rows in a SQLite database.

      sluice-replica sync   --url URL --token TOKEN --db FILE    bring the copy to the newest checkpoint, once
      sluice-replica watch  --url URL --token TOKEN --db FILE    keep it there; one line for each checkpoint
      sluice-replica status --db FILE                            what the copy holds
      sluice-replica sql    --db FILE 'SELECT …'                 read from it

      --url URL            the gateway, such as http://127.0.0.1:8686
      --token TOKEN        your token; or SLUICE_TOKEN in the environment
      --token-file FILE    a file that holds it, read again whenever a new one is needed
      --db FILE            the SQLite database; made if there is none
      --parameters JSON    the client's parameters, a JSON object
      --subscribe STREAM   a stream to subscribe to, NAME or 'NAME?key=value&key=value'; may be given again.
                           A value that is JSON counts as such, any other as text
      --no-defaults        leave out the streams that clients have without asking
      --format text|json   how to print (default text)
      --help               this

    Exit codes: 0 done, 1 it failed, 2 wrong usage, 3 the gateway or the database cannot be used.

    """

  private(set) var verb: Verb = .status
  private(set) var wantsHelp = false
  private(set) var format: Format = .text
  private(set) var parameters = "{}"
  private(set) var subscriptions: [StreamSubscription] = []
  private(set) var includesDefaults = true
  private var urlOption: String?
  private var tokenOption: String?
  private var tokenFile: String?
  private var databaseOption: String?

  init(parsing arguments: [String]) throws {
    var words: [String] = []
    var rest = arguments[...]
    while let word = rest.popFirst() {
      guard word.hasPrefix("--") else {
        words.append(word)
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      if name == "--help" {
        wantsHelp = true
        continue
      }
      if name == "--no-defaults" {
        includesDefaults = false
        continue
      }
      guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
        throw UsageError(message: "\(name) needs a value.")
      }
      try set(name, value)
    }
    if words.first == "help" || arguments.isEmpty { wantsHelp = true }
    if wantsHelp { return }
    try setVerb(words)
  }

  private mutating func set(_ name: String, _ value: String) throws {
    switch name {
    case "--url": urlOption = value
    case "--token": tokenOption = value
    case "--token-file": tokenFile = value
    case "--db": databaseOption = value
    case "--parameters": parameters = value
    case "--subscribe":
      do {
        subscriptions.append(try StreamSubscription(parsing: value))
      } catch {
        throw UsageError(message: "--subscribe: \(error.message) \(error.hint ?? "")")
      }
    case "--format":
      guard let format = Format(rawValue: value) else {
        throw UsageError(message: "--format must be text or json.")
      }
      self.format = format
    default: throw UsageError(message: "There is no option \(name).")
    }
  }

  private mutating func setVerb(_ words: [String]) throws {
    switch (words.first, words.count) {
    case ("sync", 1): verb = .sync
    case ("watch", 1): verb = .watch
    case ("status", 1): verb = .status
    case ("sql", 2): verb = .sql(words[1])
    case ("sql", _): throw UsageError(message: "sql takes one statement, as one argument.")
    case (nil, _): throw UsageError(message: "Say what to do: sync, watch, status or sql.")
    case (let word?, 1): throw UsageError(message: "There is no command \(word).")
    case (_, _): throw UsageError(message: "There are words too many.")
    }
  }

  func database() throws -> String {
    guard let databaseOption, !databaseOption.isEmpty else {
      throw UsageError(message: "--db is missing.")
    }
    return databaseOption
  }

  func url() throws -> String {
    guard let urlOption else { throw UsageError(message: "--url is missing.") }
    guard urlOption.hasPrefix("http://") || urlOption.hasPrefix("https://") else {
      throw UsageError(message: "--url must begin with http:// or https://.")
    }
    return urlOption
  }

  /// Where tokens come from: asked again, a file is read again.
  func tokenSource() throws -> @Sendable () throws -> String {
    if let tokenFile {
      guard tokenOption == nil else {
        throw UsageError(message: "Give --token or --token-file, not both.")
      }
      return {
        guard let bytes = FileManager.default.contents(atPath: tokenFile) else {
          throw UsageError(message: "The token file cannot be read.")
        }
        return String(decoding: bytes, as: UTF8.self)
          .trimmingCharacters(in: .whitespacesAndNewlines)
      }
    }
    guard let token = tokenOption ?? ProcessInfo.processInfo.environment["SLUICE_TOKEN"] else {
      throw UsageError(message: "--token or --token-file is missing.")
    }
    return { token }
  }
}
