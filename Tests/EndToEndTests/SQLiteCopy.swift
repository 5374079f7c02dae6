import Foundation
import Synchronization

/// The project's replica as a process, and its database file as any other program would read it.
final class SQLiteCopy: Sendable {
  let file: URL
  private let url: @Sendable () -> String
  private let tokenFile: URL
  private let process = Mutex<ChildProcess?>(nil)
  private let folder: URL
  private let starts = Atomic(0)

  init(url: @escaping @Sendable () -> String, token: String) throws {
    folder = try Workspace.shared.folder("replica")
    file = folder.appending(path: "replica.db")
    tokenFile = folder.appending(path: "token")
    try Data(token.utf8).write(to: tokenFile)
    self.url = url
  }

  private var arguments: [String] {
    ["--url", url(), "--token-file", tokenFile.path, "--db", file.path]
  }

  /// Runs `sluice-replica sync` to its end.
  func sync(subscribing streams: [String] = []) async throws -> (status: Int32, output: String) {
    let subscriptions = streams.flatMap { ["--subscribe", $0] }
    let result = try await run("sluice-replica", ["sync"] + arguments + subscriptions)
    return (result.status, result.output + result.error)
  }

  /// Starts `sluice-replica watch`, or another command that may be killed.
  func start(_ command: String = "watch") throws {
    let number = starts.add(1, ordering: .relaxed).newValue
    let child = try ChildProcess(
      "sluice-replica", [command] + arguments, outputFile: folder.appending(path: "log-\(number)"))
    process.withLock { $0 = child }
  }

  func kill9() async { await process.withLock { $0 }?.kill9() }
  func stop() async { _ = await process.withLock { $0 }?.stop() }
  var isRunning: Bool { process.withLock { $0 }?.isRunning ?? false }
  var output: String { process.withLock { $0 }?.output ?? "" }
  var residentBytes: Int { process.withLock { $0 }?.residentBytes ?? 0 }

  /// Reads the named tables in one transaction; nil while the file or the tables are not there.
  func content(_ tables: [String: [String]]) async throws -> Content? {
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    var script = ".timeout 5000\n.bail on\nBEGIN;\n"
    for (table, columns) in tables.sorted(by: { $0.key < $1.key }) {
      let pairs = (["id"] + columns).map { "'\($0)', \"\($0)\"" }.joined(separator: ", ")
      script += "SELECT json_array('\(table)', json_object(\(pairs))) FROM \"\(table)\";\n"
    }
    script += "COMMIT;\n"
    let result = try await run("sqlite3", ["-batch", "-readonly", file.path], input: script)
    if result.status != 0 || !result.error.isEmpty {
      if result.error.contains("no such table") || result.error.contains("no such column")
        || result.error.contains("unable to open")
      {
        return nil
      }
      throw Source.Failed(message: result.error)
    }
    var content: Content = [:]
    for line in result.output.split(separator: "\n") {
      guard
        let pair = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [Any],
        let table = pair[0] as? String, let object = pair[1] as? [String: Any]
      else { continue }
      var row = object.mapValues { Value($0) }
      let id = row.removeValue(forKey: "id")
      let key: String =
        switch id {
        case .text(let text): text
        case .number(let text): text
        default: ""
        }
      content[table, default: [:]][key] = row
    }
    return content
  }

  /// Waits until the file shows what `condition` wants.
  func shows(
    _ what: String, _ tables: [String: [String]], within seconds: Double = 30,
    _ condition: (Content) -> Bool
  ) async throws {
    try await eventually("the replica file shows \(what)", within: seconds) {
      guard let content = try await content(tables) else { return false }
      return condition(content)
    }
  }
}

extension Stage {
  func sqliteCopy(_ user: String, claims: [String: any Sendable] = [:]) throws -> SQLiteCopy {
    try SQLiteCopy(
      url: { [gateway] in "http://127.0.0.1:\(gateway.port)" }, token: token(user, claims: claims))
  }
}
