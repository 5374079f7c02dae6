import BucketStorage
import HTTPServer
import HTTPTransport
import SQLGeneration
import ServiceRuntime
import SyncRules
import SyncService

/// Runs the gateway until it is told to stop.
enum ServeCommand: Subcommand {
  static let description = CommandDescription(
    name: "serve", summary: "Run the gateway until SIGTERM or SIGINT.",
    options: [
      .config, .database,
      .flag("--deploy", "install and deploy the configured rules first, for development"),
      .flag("--follow", "never make ticks; another gateway has to"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let configuration = try ConfigurationAccess.readWithDatabase(arguments)
    let logger = JSONLogger(level: .init(name: configuration.logLevel) ?? .info)
    let verifier = try TokenKeys.verifier(
      configuration.auth, transport: CurlTransport(), observer: logger)
    if arguments.has("--deploy") {
      try await deploy(DatabaseAccess(configuration), arguments, console, logger)
    }
    let services = GatewayServices(
      configuration, verifier: verifier, leads: !arguments.has("--follow"), observer: logger)
    do {
      try await services.server.start()
    } catch {
      throw CommandFailure(.unavailable, "\(error)")
    }
    logger.observe(.info("gateway.listening", ["port": .int(services.server.boundPort)]))
    try await ServiceGroup(services.all, observer: logger).run()
    await services.close()
    logger.observe(.info("gateway.stopped"))
    return .done
  }

  private static func deploy(
    _ access: DatabaseAccess, _ arguments: Arguments, _ console: Console, _ logger: JSONLogger
  ) async throws {
    let steps = try await access.withConnection { try await Installer().install($0) }
    if !steps.isEmpty { logger.observe(.info("gateway.installed")) }
    let path = try access.rulesPath(arguments)
    let pipeline = try RulesPipeline.run(path: path, catalog: try await access.catalog())
    let rules = try pipeline.requireCompiled(console)
    try await DeployCommand.deploy(
      rules, source: pipeline.file.text, with: DeployCommand.deployer(access), console)
    logger.observe(.info("gateway.deployed", ["definitions": .int(rules.definitions.count)]))
  }
}
