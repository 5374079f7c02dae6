import Foundation
import Synchronization
import TestSupport

/// What a scenario plays on: a database of its own, rules, a gateway as a process, and replicas made for it.
final class Stage: Sendable {
  let source: Source
  let gateways: [Gateway]
  let key: [UInt8]
  private let replicas = Mutex<[WireReplica]>([])
  private let database: TestDatabase?

  private init(database: TestDatabase?, source: Source, gateways: [Gateway], key: [UInt8]) {
    self.database = database
    self.source = source
    self.gateways = gateways
    self.key = key
  }

  /// The first gateway: the one that deployed the rules.
  var gateway: Gateway { gateways[0] }

  /// Sets the stage, plays `body` on it, and clears it away, also when `body` throws.
  static func set<R>(
    schema: String, rules: String, settings: String = "", auth: String = "",
    gateways count: Int = 1, in cluster: PostgresCluster = .shared,
    _ body: (Stage) async throws -> R
  ) async throws -> R {
    let database = try await cluster.createDatabase()
    let source = Source(connectionString: database.connectionString)
    try await source.run(schema)
    let key = (0..<32).map { _ in UInt8.random(in: 0...255) }
    let gateways = try (0..<count).map { _ in
      try Gateway(source: source, rules: rules, key: key, settings: settings, auth: auth)
    }
    let stage = Stage(database: database, source: source, gateways: gateways, key: key)
    do {
      for gateway in gateways { try await gateway.start() }
      let result = try await body(stage)
      await stage.clear()
      return result
    } catch {
      let log = stage.gateway.output.suffix(3000)
      FileHandle.standardError.write(Data("the gateway's log ends:\n\(log)\n".utf8))
      await stage.clear()
      throw error
    }
  }

  func replica(
    _ user: String, claims: [String: any Sendable] = [:],
    onComplete: @escaping @Sendable (Int, Content) -> Void = { _, _ in },
    token: (@Sendable () -> String)? = nil,
    keepsStaged: @escaping @Sendable () -> Bool = { true }
  ) throws -> WireReplica {
    let made = try SignedToken.make(user: user, claims: claims, key: key)
    let replica = WireReplica(
      user, port: { [gateways] in gateways.randomElement()?.port ?? 0 }, token: token ?? { made },
      keepsStaged: keepsStaged, onComplete: onComplete)
    replicas.withLock { $0.append(replica) }
    return replica
  }

  func token(_ user: String, claims: [String: any Sendable] = [:]) throws -> String {
    try SignedToken.make(user: user, claims: claims, key: key)
  }

  /// The violations that any wire replica of this stage noted.
  var violations: [String] { replicas.withLock { $0.flatMap { $0.violations } } }

  /// Runs a script that changes something, and waits until a tick has taken it.
  func change(_ script: String) async throws {
    let before = try await tick()
    try await source.run(script)
    try await eventually("a tick takes the change", every: 0.02) { try await tick() > before }
  }

  private func tick() async throws -> Int {
    try await HTTP.get(port: gateway.port, "/ready").json["tick"] as? Int ?? -1
  }

  /// Runs `sluice verify`: its status and what it printed.
  func verify() async throws -> (status: Int32, output: String) {
    let result = try await run("sluice", ["verify", "--config", gateway.configuration.path])
    return (result.status, result.output + result.error)
  }

  private func clear() async {
    for replica in replicas.withLock({ $0 }) { replica.disconnect() }
    for gateway in gateways { await gateway.stop() }
    try? await database?.drop()
  }
}

/// The source database, spoken to through psql.
struct Source: Sendable {
  let connectionString: String

  /// Runs a script as psql does, each statement by itself unless it says BEGIN, and gives the output, fields parted by `|`.
  @discardableResult
  func run(_ script: String) async throws -> String {
    let result = try await EndToEndTests.run(
      "psql", ["-XqAt", "-v", "ON_ERROR_STOP=1", "-d", connectionString, "-f", "-"],
      input: script)
    guard result.status == 0 else { throw Failed(message: result.error) }
    return result.output.trimmingCharacters(in: .newlines)
  }

  func lines(_ query: String) async throws -> [String] {
    try await run(query).split(separator: "\n").map(String.init)
  }

  func session() throws -> PsqlSession { try PsqlSession(connectionString) }

  struct Failed: Error, CustomStringConvertible {
    let message: String
    var description: String { message }
  }
}

/// A psql that stays: for transactions that are open while other things happen.
final class PsqlSession: Sendable {
  private let process: Mutex<Process>
  private let input: FileHandle
  private let outputFile: URL
  private let count = Atomic(0)

  init(_ connectionString: String) throws {
    let process = Process()
    process.executableURL = try Executables.find("psql")
    process.arguments = ["-XqAt", "-d", connectionString]
    process.environment = Executables.environment
    let pipe = Pipe()
    outputFile = try Workspace.shared.folder("psql").appending(path: "output")
    try Data().write(to: outputFile)
    let output = try FileHandle(forWritingTo: outputFile)
    process.standardInput = pipe
    process.standardOutput = output
    process.standardError = output
    try process.run()
    Janitor.shared.watch(process.processIdentifier)
    input = pipe.fileHandleForWriting
    self.process = Mutex(process)
  }

  /// Runs a statement and waits for its end.
  @discardableResult
  func run(_ statement: String, within seconds: Double = 30) async throws -> String {
    let marker = begin(statement)
    try await eventually("psql: \(statement)", within: seconds, every: 0.005) {
      isDone(marker)
    }
    return (try? String(contentsOf: outputFile, encoding: .utf8)) ?? ""
  }

  /// Starts a statement without waiting; the marker that `isDone` takes.
  func begin(_ statement: String) -> String {
    let marker = "done-\(count.add(1, ordering: .relaxed).newValue)"
    try? input.write(contentsOf: Data("\(statement);\n\\echo \(marker)\n".utf8))
    return marker
  }

  func isDone(_ marker: String) -> Bool {
    let text = (try? String(contentsOf: outputFile, encoding: .utf8)) ?? ""
    return text.contains(marker + "\n")
  }

  /// Ends the session, rolling back what is open.
  func close() {
    try? input.close()
    process.withLock { process in
      process.terminate()
      Janitor.shared.forget(process.processIdentifier)
    }
  }
}

/// `sluice serve` as a process that can be killed and started again on the same port.
final class Gateway: Sendable {
  let configuration: URL
  let port: Int
  private let folder: URL
  private let process = Mutex<ChildProcess?>(nil)
  private let starts = Atomic(0)

  init(
    source: Source, rules: String, key: [UInt8], settings: String = "", auth: String = ""
  ) throws {
    folder = try Workspace.shared.folder("gateway")
    port = try FreePort.next()
    configuration = folder.appending(path: "sluice.yaml")
    let rulesFile = folder.appending(path: "rules.yaml")
    try Data(rules.utf8).write(to: rulesFile)
    try Self.write(
      configuration, database: source.connectionString, rules: rulesFile, port: port, key: key,
      settings: settings, auth: auth)
  }

  /// Points the gateway at another database, from the next start on.
  func point(at source: Source, rules: String, key: [UInt8], settings: String = "") throws {
    let rulesFile = folder.appending(path: "rules.yaml")
    try Data(rules.utf8).write(to: rulesFile)
    try Self.write(
      configuration, database: source.connectionString, rules: rulesFile, port: port, key: key,
      settings: settings)
  }

  private static func write(
    _ file: URL, database: String, rules: URL, port: Int, key: [UInt8], settings: String,
    auth: String = ""
  ) throws {
    let text = """
      database: "\(database)"
      rules: \(rules.path)
      listen: 127.0.0.1:\(port)
      auth:
        audience: [test]
        keys: [{kid: test, kty: oct, alg: HS256, k: \(SignedToken.encode(key))}]
        \(auth)
      \(settings)

      """
    try Data(text.utf8).write(to: file)
  }

  /// Starts the process and waits until it says that it is ready.
  func start(
    within seconds: Double = 60, waiting: Bool = true, deploying: Bool = true
  ) async throws {
    let number = starts.add(1, ordering: .relaxed).newValue
    let child = try ChildProcess(
      "sluice",
      ["serve", "--config", configuration.path] + (deploying ? ["--deploy"] : []),
      outputFile: folder.appending(path: "log-\(number)"))
    process.withLock { $0 = child }
    if waiting { try await awaitReady(within: seconds) }
  }

  func awaitReady(within seconds: Double = 60) async throws {
    let port = port
    try await eventually("the gateway is ready", within: seconds, every: 0.03) {
      guard process.withLock({ $0?.isRunning }) == true else {
        throw Expired(what: "the gateway ended: \(output.suffix(2000))", seconds: seconds)
      }
      return (try? await HTTP.get(port: port, "/ready").status) == 200
    }
  }

  func kill9() async { await process.withLock { $0 }?.kill9() }

  @discardableResult
  func stop() async -> Int32 { await process.withLock { $0 }?.stop() ?? 0 }

  var residentBytes: Int { process.withLock { $0 }?.residentBytes ?? 0 }
  var peakBytes: Int { process.withLock { $0 }?.peakBytes ?? 0 }
  var output: String { process.withLock { $0 }?.output ?? "" }
}

/// Ports nobody listens on, each given once.
enum FreePort {
  private static let given = Mutex<Set<Int>>([])

  static func next() throws -> Int {
    for _ in 0..<100 {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(descriptor) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let port = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { plain -> Int in
          guard bind(descriptor, plain, length) == 0, getsockname(descriptor, plain, &length) == 0
          else { return 0 }
          return Int(UnsafeRawPointer(plain).load(as: sockaddr_in.self).sin_port.bigEndian)
        }
      }
      if port > 0, given.withLock({ $0.insert(port).inserted }) { return port }
    }
    throw Expired(what: "a free port", seconds: 0)
  }
}

/// Single requests.
enum HTTP {
  struct Answer: Sendable {
    let status: Int
    let headers: [String: String]
    let body: String

    var json: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] ?? [:]
    }
  }

  static func get(port: Int, _ target: String, token: String? = nil) async throws -> Answer {
    try await send(port: port, "GET", target, token: token)
  }

  static func send(
    port: Int, _ method: String, _ target: String, token: String? = nil, body: String? = nil
  ) async throws -> Answer {
    try await blocking {
      let deadline = Date.now + 10
      let connection = try WireConnection(port: port) { Date.now > deadline }
      try connection.send(
        method, target, token: token, body: body, headers: [("Connection", "close")])
      try connection.readHead()
      return Answer(
        status: connection.status, headers: connection.headers,
        body: String(decoding: try connection.wholeBody(), as: UTF8.self))
    }
  }
}
