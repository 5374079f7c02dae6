package import BucketStorage
internal import EventLoop
package import HTTPServer
internal import Postgres
package import ServiceRuntime
package import TokenAuth

/// The parts of one gateway, put together and ready to run.
///
/// ```swift
/// let services = GatewayServices(configuration, verifier: verifier, observer: logger)
/// try await ServiceGroup(services.all).run()
/// ```
package struct GatewayServices: Sendable {
  package let server: HTTPServer
  package let gateway: Gateway
  package let feed: LiveFeed
  /// In the order of starting; they stop in the reverse order.
  package let all: [any Service]
  private let pool: PostgresPool

  package init(
    _ configuration: ServiceConfiguration, verifier: TokenVerifier, leads: Bool = true,
    metrics: Metrics = Metrics(), observer: any Observer = NoObserver()
  ) {
    let databaseLoop = EventLoop(name: "postgres")
    let plain = PostgresConfiguration(connectionString: configuration.database)
    let pool = PostgresPool(
      configuration: PostgresConfiguration(
        connectionString: configuration.database, settings: BucketStore.settings),
      loop: databaseLoop, size: configuration.databaseConnections)
    let source = StorageSource(
      store: BucketStore(pool: pool), pageRows: configuration.streams.pageRows,
      budget: ByteBudget(configuration.streams.largeBytes))
    let feed = LiveFeed(source: source, observer: observer)
    var routes = Gateway.Configuration()
    routes.session.keepaliveInterval = configuration.streams.keepalive
    routes.pageRows = configuration.streams.pageRows
    let gateway = Gateway(
      source: source, feed: feed,
      gate: AdmissionGate(
        limit: configuration.streams.maximum, startingLimit: configuration.streams.starting),
      verifier: verifier, configuration: routes, metrics: metrics, observer: observer)
    let server = HTTPServer(
      Self.http(configuration), loop: EventLoop(name: "http"), observer: observer,
      metrics: metrics
    ) { request, responder in
      await gateway.handle(request, responder)
    }
    var services: [any Service] = []
    if leads {
      services.append(
        Sequencer(
          configuration: plain, loop: EventLoop(name: "sequencer"),
          options: Self.sequencer(configuration), observer: observer, metrics: metrics))
    }
    services += [
      feed,
      TickListener(configuration: plain, loop: databaseLoop, feed: feed, observer: observer),
      server, gateway,
    ]
    self.server = server
    self.gateway = gateway
    self.feed = feed
    self.pool = pool
    all = services
  }

  /// Gives the connections back, after the services have ended.
  package func close() async {
    await pool.close()
  }

  /// How the sequencer works under a configuration.
  package static func sequencer(_ configuration: ServiceConfiguration) -> SequencerOptions {
    var options = SequencerOptions()
    options.busyPeriod = configuration.tick.busy
    options.idlePeriod = configuration.tick.idle
    options.tombstoneRetention = configuration.tombstoneRetention
    // What is to be forgotten soon has to be looked at often.
    options.housekeepingPeriod = min(
      options.housekeepingPeriod, max(.milliseconds(200), configuration.tombstoneRetention / 2))
    return options
  }

  private static func http(_ configuration: ServiceConfiguration) -> HTTPServerConfiguration {
    var http = HTTPServerConfiguration()
    switch configuration.listen {
    case .tcp(let host, let port): http.address = .tcp(host: host, port: port)
    case .unixSocket(let path): http.address = .unixSocket(path)
    }
    http.maxBodyBytes = configuration.http.bodyBytes
    http.maxConnections = configuration.http.connections
    http.sendQueueLimit = configuration.streams.sendQueueBytes
    http.slowReaderTimeout = configuration.streams.slowReaderTimeout
    return http
  }
}
