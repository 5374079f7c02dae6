import BucketStorage
import EventLoop
import Foundation
import HTTPServer
import HTTPTransport
import Postgres
import SQLGeneration
import ServiceRuntime
import SyncProtocol
import SyncRules
import Synchronization
import TestSupport
import TokenAuth

@testable import SyncService

/// A gateway on a database of its own, with its port, and what a test needs to talk to both.
struct LiveGateway {
  let database: TestDatabase
  let source: PostgresConnection
  let services: GatewayServices
  let transport = CurlTransport()

  static let keySet =
    #"{"keys":[{"kty":"oct","alg":"HS256","k":"c2Vzc2lvbi1zZXJ2aWNlLXRlc3RzLXNlY3JldC1rZXk"}]}"#

  var url: String { "http://127.0.0.1:\(services.server.boundPort)" }

  /// Installs, deploys `rules` over `schema`, serves, and clears away.
  static func run<Result: Sendable>(
    schema: String, rules: String,
    configure: (inout ServiceConfiguration) -> Void = { _ in },
    _ body: (LiveGateway) async throws -> Result
  ) async throws -> Result {
    try await run(
      schema: schema, compile: { try await Self.compile(rules, source: $0) },
      configure: configure, body)
  }

  /// Likewise with compiled rules.
  static func run<Result: Sendable>(
    schema: String, compile: (PostgresConnection) async throws -> CompiledRules,
    configure: (inout ServiceConfiguration) -> Void = { _ in },
    _ body: (LiveGateway) async throws -> Result
  ) async throws -> Result {
    try await withDatabase { database in
      let source = try await database.connect()
      try await source.execute(schema)
      _ = try await Installer().install(source)
      try await deploy(try await compile(source), database: database)
      var configuration = ServiceConfiguration()
      configuration.database = database.connectionString
      configuration.listen = .tcp(host: "127.0.0.1", port: 0)
      configure(&configuration)
      var policy = TokenVerifier.Policy(audience: ["test"])
      policy.leeway = 1
      let keys = try JSONWebKeySet(json: Array(keySet.utf8), origin: .configuration)
      let services = GatewayServices(
        configuration, verifier: TokenVerifier(sources: [FixedKeys(keys)], policy: policy))
      try await services.server.start()
      let stop = StopSignal()
      return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try await StopSignal.$current.withValue(stop) {
            try await ServiceGroup(services.all, signals: [], stopTimeout: .seconds(5)).run()
          }
        }
        let result: Swift.Result<Result, any Error>
        do {
          result = .success(
            try await body(
              LiveGateway(database: database, source: source, services: services)))
        } catch {
          result = .failure(error)
        }
        stop.request()
        try? await group.waitForAll()
        await services.close()
        await source.close()
        return try result.get()
      }
    }
  }

  static func deploy(
    _ rules: String, database: TestDatabase, source: PostgresConnection
  ) async throws {
    try await deploy(try await compile(rules, source: source), database: database)
  }

  private static func deploy(_ rules: CompiledRules, database: TestDatabase) async throws {
    try await Deployer(
      configuration: PostgresConfiguration(connectionString: database.connectionString),
      loop: TestDatabase.loop
    ).deploy(rules, source: "")
  }

  private static func compile(
    _ rules: String, source: PostgresConnection
  ) async throws -> CompiledRules {
    let (read, found) = RulesReader.read(rules, fileName: "rules.yaml")
    let catalog = try await CatalogReader().read(source)
    guard let read, let plan = PlanCompiler.compile(read, catalog).plan else {
      throw RulesFailure(findings: found)
    }
    return SQLGenerator.compile(plan)
  }

  struct RulesFailure: Error {
    var findings: [Diagnostic]
  }

  // MARK: Tokens

  /// A token whose claims are `claims`, the text of an object's members, besides the required ones.
  static func token(_ user: String, claims: String = "", lifetime: Int = 600) throws -> String {
    let keys = try JSONWebKeySet(json: Array(keySet.utf8), origin: .configuration)
    let now = Int(Date().timeIntervalSince1970)
    let more = claims.isEmpty ? "" : "," + claims
    let json =
      "{\"sub\":\(JSONText.quoted(user)),\"aud\":\"test\",\"iat\":\(now),\"exp\":\(now + lifetime)\(more)}"
    guard let secret = keys.signingSecret else { throw RulesFailure(findings: []) }
    return try TokenSigner(secret: secret).sign(claimsJSON: json)
  }

  // MARK: Requests

  struct Answer {
    var status: Int
    var body: String
    var headers: [(name: String, value: String)]

    var errorCode: String? { ErrorBody(body: Array(body.utf8))?.code }
  }

  func send(
    _ method: String, _ path: String, token: String? = nil, body: String? = nil
  ) async throws -> Answer {
    var headers: [(name: String, value: String)] = []
    if let token { headers.append(("Authorization", "Bearer \(token)")) }
    let response = try await transport.send(
      TransportRequest(
        method: method, url: url + path, headers: headers, body: body.map { Array($0.utf8) },
        timeout: .seconds(20)))
    let bytes = try await response.body.collect(upTo: 64 << 20)
    return Answer(
      status: response.status, body: String(decoding: bytes, as: UTF8.self),
      headers: response.headers)
  }

  func get(_ path: String, token: String? = nil) async throws -> Answer {
    try await send("GET", path, token: token)
  }

  /// Streams to `client` until `isDone`, the end, or the deadline. Answers the status, and whether the
  /// gateway ended it.
  @discardableResult
  func stream(
    to client: ModelClient, token: String, within: Duration = .seconds(20),
    until isDone: @escaping @Sendable (ModelClient.State) -> Bool
  ) async throws -> (status: Int, ended: Bool) {
    let response = try await transport.send(
      TransportRequest(
        method: "POST", url: url + "/v1/stream",
        headers: [("Authorization", "Bearer \(token)")], body: client.request.encoded()))
    return try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        for try await chunk in response.body {
          try await client.write(SharedBytes(chunk))
          if client.state.withLock({ isDone($0) }) { return false }
        }
        return true
      }
      group.addTask {
        try await Task.sleep(for: within)
        throw Late()
      }
      let ended = try await group.next() ?? true
      group.cancelAll()
      return (response.status, ended)
    }
  }

  /// Returns when everything committed before is in the buckets.
  func caughtUp() async throws {
    let deadline = ContinuousClock.now + .seconds(15)
    let now = try await source.query("SELECT pg_current_xact_id()")
    let own = now.string(0, 0) ?? ""
    while ContinuousClock.now < deadline {
      let seen = try await source.query(
        """
        SELECT pg_visible_in_snapshot($1::xid8, snapshot) FROM sluice.ticks
        ORDER BY number DESC LIMIT 1
        """, [.text(own)])
      if seen.bool(0, 0) == true { return }
      // A tick is made only when something was captured.
      _ = try await source.query(
        "UPDATE items SET v = v WHERE id = (SELECT min(id) FROM items)")
      try await Task.sleep(for: .milliseconds(20))
    }
    throw Late()
  }

  struct Late: Error {}
}
