internal import CLibevent
internal import EventLoop
internal import Glibc
internal import ServiceRuntime
internal import Synchronization

/// The listener and the connections of a server, on its loop.
actor HTTPServerCore {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  nonisolated let configuration: HTTPServerConfiguration
  nonisolated let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void
  nonisolated let observer: any Observer
  nonisolated let stopSignal = StopSignal()
  nonisolated let slowReaders: Counter
  nonisolated let requestSeconds: Histogram
  private nonisolated let metrics: Metrics
  private nonisolated let openConnections: Gauge
  private nonisolated let refusedConnections: Counter
  private nonisolated let cachedDate = Mutex<(second: Int, text: String)>((0, ""))

  /// Connections answered 503 at one time; beyond, they are closed unanswered.
  private static let surplusLimit = 64

  private var listener: HTTPListener?
  private var watch: LoopEvent?
  private var sweep: LoopEvent?
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  private var drainWaiters: [CheckedContinuation<Void, Never>] = []

  init(
    configuration: HTTPServerConfiguration, loop: EventLoop, observer: any Observer,
    metrics: Metrics, handler: @escaping @Sendable (HTTPRequest, HTTPResponder) async -> Void
  ) {
    self.configuration = configuration
    self.loop = loop
    self.observer = observer
    self.metrics = metrics
    self.handler = handler
    openConnections = metrics.gauge("sluice_http_connections", "Open connections.")
    refusedConnections = metrics.counter(
      "sluice_http_refused_connections_total", "Connections beyond the limit.")
    slowReaders = metrics.counter(
      "sluice_http_slow_readers_total", "Connections closed because the peer took nothing.")
    requestSeconds = metrics.histogram(
      "sluice_http_response_seconds", "From a whole request to the end of its response.")
  }

  nonisolated var isStopping: Bool { stopSignal.isRequested }

  // MARK: Life

  /// Binds and begins to accept; the port, or 0 for a Unix socket.
  func start() throws -> Int {
    if let listener { return listener.port }
    // A write to a connection that the peer has reset must be an error and not the end of the process.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    let listener = try HTTPListener(configuration)
    self.listener = listener
    watch = loop.watch(listener.descriptor, for: .read) { [self] _ in
      assumeIsolated { $0.accept() }
    }
    scheduleSweep()
    observer.observe(.info("http.listening", ["address": .string(listener.description)]))
    return listener.port
  }

  /// Stops accepting, lets the responses under way end within the drain timeout, and closes the rest.
  func stop() async {
    stopSignal.request()
    watch?.cancel()
    watch = nil
    listener?.close()
    listener = nil
    drainAll()
    if !connections.isEmpty {
      let timeout = loop.after(configuration.drainTimeout) { [self] in
        assumeIsolated { $0.closeAll() }
      }
      await withCheckedContinuation { drainWaiters.append($0) }
      timeout.cancel()
    }
    sweep?.cancel()
    sweep = nil
  }

  private func drainAll() {
    for connection in Array(connections.values) { connection.assumeIsolated { $0.drain() } }
  }

  private func closeAll() {
    observer.observe(.warning("http.drain_timeout", ["open": .int(connections.count)]))
    for connection in Array(connections.values) { connection.assumeIsolated { $0.close() } }
  }

  func remove(_ connection: HTTPConnection) {
    connections[ObjectIdentifier(connection)] = nil
    openConnections.set(connections.count)
    guard connections.isEmpty, isStopping else { return }
    let waiters = drainWaiters
    drainWaiters = []
    for waiter in waiters { waiter.resume() }
  }

  // MARK: Accepting

  private func accept() {
    for _ in 0..<64 {
      guard let listener, let accepted = listener.accept() else { return }
      guard accepted.descriptor >= 0 else { return pause() }
      let surplus = connections.count - configuration.maxConnections
      if surplus >= 0 { refusedConnections.add() }
      guard surplus < Self.surplusLimit else {
        close(accepted.descriptor)
        continue
      }
      let connection = HTTPConnection(
        core: self, remoteAddress: accepted.address, isSurplus: surplus >= 0)
      connections[ObjectIdentifier(connection)] = connection
      openConnections.set(connections.count)
      if !connection.assumeIsolated({ $0.open(accepted.descriptor) }) {
        close(accepted.descriptor)
        remove(connection)
      }
    }
  }

  /// Out of descriptors: the backlog waits instead of turning the loop.
  private func pause() {
    observer.observe(.error("http.accept_failed", ["errno": .int(Int(errno))]))
    watch?.cancel()
    watch = nil
    loop.after(.milliseconds(100)) { [self] in
      assumeIsolated { core in
        guard let listener = core.listener, core.watch == nil else { return }
        core.watch = core.loop.watch(listener.descriptor, for: .read) { [self] _ in
          assumeIsolated { $0.accept() }
        }
      }
    }
  }

  /// Looks at the deadlines of all connections, at a fraction of the shortest.
  private func scheduleSweep() {
    let shortest = min(
      configuration.headTimeout, configuration.bodyTimeout, configuration.idleTimeout)
    let interval = min(max(shortest / 8, .milliseconds(10)), .milliseconds(500))
    sweep = loop.after(interval) { [self] in
      assumeIsolated { core in
        let now = ContinuousClock.now
        for connection in Array(core.connections.values) {
          connection.assumeIsolated { $0.checkDeadline(now) }
        }
        if core.listener != nil || !core.connections.isEmpty { core.scheduleSweep() }
      }
    }
  }

  // MARK: What connections ask

  nonisolated func countResponse(_ status: Int) {
    metrics.counter("sluice_http_responses_total", "Responses.", ["status": String(status)]).add()
  }

  /// The time as HTTP writes it, made once a second.
  nonisolated func date() -> String {
    cachedDate.withLock { cached in
      var now = time(nil)
      guard now != cached.second else { return cached.text }
      var parts = tm()
      gmtime_r(&now, &parts)
      let padded = { (number: Int32) in number < 10 ? "0\(number)" : "\(number)" }
      let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
      let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
      ]
      let date = "\(padded(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
      let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(padded).joined(separator: ":")
      cached = (now, "\(days[Int(parts.tm_wday)]), \(date) \(clock) GMT")
      return cached.text
    }
  }
}
