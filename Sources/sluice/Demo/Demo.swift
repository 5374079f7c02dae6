import BucketStorage
import Foundation
import HTTPServer
import HTTPTransport
import Postgres
import SQLGeneration
import ServiceRuntime
import SyncRules
import SyncService
import Synchronization
import TokenAuth

/// The field-service example in an empty database, with a gateway: the stage of the demo.
final class Demo: Sendable {
  private struct State {
    var isLoaded = false
    var log: FileHandle?
  }

  let database: String
  let narrator: Narrator
  /// Where the replicas and the configuration are, for as long as the demo lasts.
  let folder = FileManager.default.temporaryDirectory.appending(
    path: "sluice-demo-\(ProcessInfo.processInfo.processIdentifier)")
  private let listen: ServiceConfiguration.Address?
  private let console: Console
  private let state = Mutex(State())

  init(database: String, listen: String?, _ console: Console) throws {
    self.database = database
    self.console = console
    narrator = Narrator(console)
    self.listen = try listen.map {
      guard let address = ConfigurationReader.address($0), case .tcp = address else {
        throw UsageError(message: "--listen must be host:port")
      }
      return address
    }
  }

  func path(_ name: String) -> String { folder.appending(path: name).path }

  private func access(_ configuration: ServiceConfiguration? = nil) -> DatabaseAccess {
    var configuration = configuration ?? ServiceConfiguration()
    configuration.database = database
    return DatabaseAccess(configuration)
  }

  /// For the tables of the example: whatever the role is called, they do not go to its own schema.
  private static let settings = ["search_path": "public"]

  private static func text(_ resource: [UInt8]) -> String {
    String(decoding: resource, as: UTF8.self)
  }

  // MARK: Playing

  /// Plays to the end; afterwards, if it stays open, serves until it is cancelled.
  func play(staysOpen: Bool) async throws {
    try await access().withConnection(Self.settings) { source in
      try await refuseUnlessEmpty(source)
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      try await load(source)
      narrator.step("The gateway, with rules/field-service.yaml")
      var configuration = try configuration()
      try await deploy(configuration)
      let logger = try openLog()
      let services = try await start(&configuration, logger)
      let url = "http://\(try write(configuration))"
      narrator.tell("listens on \(url)")
      do {
        try await serve(services, logger) { [configuration] in
          try await DemoStory(
            demo: self, source: source, url: url, auth: configuration.auth
          ).tell(staysOpen: staysOpen)
        }
        await services.close()
      } catch {
        await services.close()
        throw error
      }
    }
  }

  private func refuseUnlessEmpty(_ source: PostgresConnection) async throws {
    let result = try await source.query(
      """
      SELECT current_database(), string_agg(o.name, ', ') FROM (
        SELECT n.nspname || '.' || c.relname AS name FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
          AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
        ORDER BY c.relkind = 'S', 1 LIMIT 3) o
      """)
    guard let names = result.string(0, 1) else { return }
    throw CommandFailure(
      .wrongUsage, "the database \(result.string(0, 0) ?? "") is not empty: it holds \(names)",
      hint: "The demo takes a database of its own, such as one made with: createdb sluice_demo")
  }

  private func load(_ source: PostgresConnection) async throws {
    narrator.step("PostgreSQL, with the firm's data")
    state.withLock { $0.isLoaded = true }
    try await source.execute(Self.text(PackageResources.schema_sql))
    try await source.execute(Self.text(PackageResources.data_sql))
    for table in [
      "technicians", "regions", "customers", "work_orders", "parts", "notes", "visits",
      "order_parts",
    ] {
      let result = try await source.query("SELECT count(*) FROM \(SQLIdentifier(table))")
      narrator.tell(table, (result.string(0, 0) ?? "").leftPadded(7) + " rows", width: 12)
    }
  }

  // MARK: The gateway

  private func configuration() throws -> ServiceConfiguration {
    var configuration = ServiceConfiguration()
    configuration.database = database
    configuration.listen = listen ?? .tcp(host: "127.0.0.1", port: 8686)
    configuration.auth.audience = ["fieldservice"]
    let secret = Data((0..<32).map { _ in UInt8.random(in: 0...255) }).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    configuration.auth.keySetJSON =
      #"{"keys":[{"kid":"demo","kty":"oct","alg":"HS256","k":"\#(secret)"}]}"#
    return configuration
  }

  private func deploy(_ configuration: ServiceConfiguration) async throws {
    let access = access(configuration)
    try Data(PackageResources.field_service_yaml).write(to: folder.appending(path: "rules.yaml"))
    _ = try await access.withConnection { try await Installer().install($0) }
    let pipeline = RulesPipeline.run(
      text: Self.text(PackageResources.field_service_yaml), name: "field-service.yaml",
      catalog: try await access.catalog())
    try await DeployCommand.deploy(
      try pipeline.requireCompiled(console), source: pipeline.file.text,
      with: DeployCommand.deployer(access), console)
  }

  private func openLog() throws -> JSONLogger {
    let file = folder.appending(path: "gateway.log")
    try Data().write(to: file)
    let log = try FileHandle(forWritingTo: file)
    state.withLock { $0.log = log }
    return JSONLogger(descriptor: log.fileDescriptor)
  }

  /// Listens at the usual port, or at a free one when that is taken and nobody asked for it.
  private func start(
    _ configuration: inout ServiceConfiguration, _ logger: JSONLogger
  ) async throws -> GatewayServices {
    let verifier = try TokenKeys.verifier(
      configuration.auth, transport: CurlTransport(), observer: logger)
    var services = GatewayServices(configuration, verifier: verifier, observer: logger)
    do {
      try await services.server.start()
    } catch let error as HTTPListenError {
      guard listen == nil else { throw CommandFailure(.unavailable, "\(error)") }
      await services.close()
      configuration.listen = .tcp(host: "127.0.0.1", port: 0)
      services = GatewayServices(configuration, verifier: verifier, observer: logger)
      try await services.server.start()
    }
    if case .tcp(let host, _) = configuration.listen {
      configuration.listen = .tcp(host: host, port: services.server.boundPort)
    }
    return services
  }

  /// Writes the configuration for the other commands, and gives the address.
  private func write(_ configuration: ServiceConfiguration) throws -> String {
    guard case .tcp(let host, let port) = configuration.listen else { return "" }
    let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    let keys = configuration.auth.keySetJSON?.dropFirst("{\"keys\":".count).dropLast() ?? "[]"
    // JSON is YAML too.
    let text = """
      database: \(JSONText.quoted(database))
      rules: rules.yaml
      listen: \(JSONText.quoted(address))
      auth: {audience: [fieldservice], keys: \(keys)}

      """
    try Data(text.utf8).write(to: folder.appending(path: "sluice.yaml"))
    return address
  }

  /// Runs the gateway for as long as `body`, which fails when the gateway does.
  private func serve(
    _ services: GatewayServices, _ logger: JSONLogger,
    _ body: @escaping @Sendable () async throws -> Void
  ) async throws {
    let stop = StopSignal()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await StopSignal.$current.withValue(stop) {
          try await ServiceGroup(
            services.all, signals: [], stopTimeout: .seconds(5), observer: logger
          ).run()
        }
      }
      group.addTask {
        defer { stop.request() }
        try await body()
      }
      do {
        while try await group.next() != nil {}
      } catch {
        group.cancelAll()
        throw error
      }
    }
  }

  // MARK: Clearing away

  /// The last warnings and errors of the gateway's log.
  var logTail: String {
    let text = (try? String(contentsOfFile: path("gateway.log"), encoding: .utf8)) ?? ""
    return text.split(separator: "\n").filter { !$0.contains(#""level":"info""#) }.suffix(5)
      .joined(separator: "\n")
  }

  /// Takes everything away that was made: the database is as empty as before.
  func clear() async throws {
    let (isLoaded, log) = state.withLock { ($0.isLoaded, $0.log) }
    try log?.close()
    if FileManager.default.fileExists(atPath: folder.path) {
      try FileManager.default.removeItem(at: folder)
    }
    guard isLoaded else { return }
    try await access().withConnection(Self.settings) { source in
      try await Installer().uninstall(source)
      try await source.execute(
        """
        DROP TABLE IF EXISTS order_parts, visits, notes, work_orders, manuals, parts, customers,
          memberships, technicians, regions;
        DROP TYPE IF EXISTS order_status;
        """)
    }
  }
}
