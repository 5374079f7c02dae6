package import HTTPTransport
public import SQLiteReplica
package import SyncProtocol

/// Keeps a replica in step with its gateway.
///
/// ```swift
/// let replica = try await Replica.open(path: "shop.db")
/// let client = try SyncClient(url: "https://sync.example.com", replica: replica) {
///   try await session.currentToken()
/// }
/// try await client.run()          // until the task is cancelled
/// ```
///
/// `run()` connects, applies checkpoints as they come, and connects again whenever the line breaks, from where the replica
/// stands; `syncOnce()` stops at the first whole checkpoint. One of them at a time. Meanwhile the application reads its tables
/// with ordinary SQL and observes `statuses` and `checkpoints`.
public final class SyncClient: Sendable {
  /// Gives a token for the gateway. It is asked at the start, when the gateway refuses the last one, and when that is about
  /// to expire.
  public typealias TokenProvider = @Sendable () async throws -> String

  /// What a client asks for, and how patient it is.
  public struct Options: Sendable {
    /// The client's parameters: the text of a JSON object.
    public var parameters: String = "{}"
    /// Whether the streams are wanted that clients have without asking (`auto_subscribe`).
    public var includesDefaults = true
    public var backoff = Backoff()
    /// How many failures in a row `syncOnce()` bears.
    public var attempts = 3
    /// How long no byte may come before the line counts as broken.
    public var idleTimeout: Duration = .seconds(60)

    /// Waits; a test does not.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// Chance, from 0 to 1.
    package var jitter: @Sendable () -> Double = { Double.random(in: 0...1) }

    public init() {}
  }

  /// The replica that is kept in step.
  public let replica: Replica
  private let url: String
  private let options: Options
  private let token: TokenProvider
  private let transport: any HTTPTransport
  private let registry = SubscriptionRegistry()
  private let statusHub = StatusHub<SyncStatus>(
    latest: SyncStatus(), bufferSize: 1, replaysLatest: true)
  private let checkpointHub = StatusHub<AppliedCheckpoint>(bufferSize: 1024, replaysLatest: false)

  /// A client of the gateway at `url`, such as `https://sync.example.com`.
  ///
  /// Throws when the parameters of `options` are not JSON objects.
  public convenience init(
    url: String, replica: Replica, options: Options = Options(), token: @escaping TokenProvider
  ) throws {
    let transport = CurlTransport(CurlTransportConfiguration(idleTimeout: options.idleTimeout))
    try self.init(
      url: url, replica: replica, options: options, transport: transport, token: token)
  }

  package init(
    url: String, replica: Replica, options: Options = Options(), transport: any HTTPTransport,
    token: @escaping TokenProvider
  ) throws {
    guard StreamRequest.isObject(options.parameters) else {
      throw SyncFailure(
        kind: .replica, code: "SLUICE_CLIENT_PARAMETERS",
        message: "Parameters must be the text of a JSON object.")
    }
    self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
    self.replica = replica
    self.options = options
    self.transport = transport
    self.token = token
  }

  // MARK: Subscribing

  /// Subscribes to a stream of the rules.
  ///
  /// ```swift
  /// let list = client.subscribe("lists", parameters: ["list": .string("a1")])
  /// …
  /// list.cancel()
  /// ```
  ///
  /// What it leads to comes into the replica, and leaves it again after `cancel()`. A client that is connected asks the
  /// gateway at once, and goes on from what it holds; `SyncStatus.subscriptions` tells what came of it. Subscriptions last as
  /// long as the client: an application subscribes anew when it starts.
  ///
  /// - Parameters:
  ///   - stream: The stream's name.
  ///   - parameters: What the stream's queries read with `subscription.parameter()`.
  ///   - priority: The priority in place of the rules', from 0 to 3; a lower number is visible earlier.
  /// - Precondition: The priority is 0 to 3, and the name is not empty.
  public func subscribe(
    _ stream: String, parameters: [String: JSONValue] = [:], priority: Int? = nil
  ) -> Subscription {
    precondition(!stream.isEmpty, "a stream has a name")
    precondition((0...3).contains(priority ?? 0), "a priority is 0 to 3")
    return subscribe(
      StreamSubscription(
        stream: stream, parametersJSON: JSONValue.object(parameters).text,
        overridePriority: priority))
  }

  package func subscribe(_ subscription: StreamSubscription) -> Subscription {
    Subscription(registry, subscription)
  }

  /// One stream subscribed to, until it is cancelled. Letting go of it changes nothing.
  public final class Subscription: Sendable {
    public let stream: String
    /// The text of a JSON object.
    public let parameters: String
    private let registry: SubscriptionRegistry
    private let id: Int

    init(_ registry: SubscriptionRegistry, _ subscription: StreamSubscription) {
      self.registry = registry
      stream = subscription.stream
      parameters = subscription.parametersJSON
      id = registry.add(subscription)
    }

    /// Ends the subscription. What it alone led to leaves the replica.
    public func cancel() { registry.remove(id) }
  }

  // MARK: Observing

  /// The status now.
  public var status: SyncStatus { statusHub.latest ?? SyncStatus() }

  /// The status now and whenever it changes; a slow reader sees the newest.
  public var statuses: AsyncStream<SyncStatus> { statusHub.listen() }

  /// Each checkpoint that becomes visible from now on.
  public var checkpoints: AsyncStream<AppliedCheckpoint> { checkpointHub.listen() }

  // MARK: Syncing

  /// Keeps the replica in step until the task is cancelled.
  public func run() async throws { try await drive(.continuous) }

  /// Brings the replica to the gateway's newest checkpoint.
  ///
  /// Throws `SyncFailure` after too many failures in a row; what was downloaded until then is kept.
  public func syncOnce() async throws { try await drive(.once(attempts: options.attempts)) }

  private func drive(_ mode: SyncStateMachine.Mode) async throws {
    var machine = SyncStateMachine(
      mode: mode, backoff: options.backoff, lastCheckpoint: try await replica.lastCheckpoint())
    var stream: OpenStream?
    var bearer = ""
    defer {
      machine.stopped()
      statusHub.publish(machine.status)
    }
    var action = machine.start()
    do {
      while true {
        try Task.checkCancellation()
        if machine.status != statusHub.latest { statusHub.publish(machine.status) }
        if action != .read, action != .renewToken, stream != nil {
          stream = nil
          // What cannot be written stays in memory: the next connection begins with it, and says why.
          try? await replica.end()
        }
        switch action {
        case .fetchToken:
          do {
            bearer = try await fetchToken()
            action = machine.fetchedToken()
          } catch let failure as SyncFailure {
            action = machine.failed(failure, jitter: options.jitter())
          }
        case .renewToken:
          // Without an answer the stream goes on for as long as its token lasts.
          let renewed = try? await fetchToken()
          action = machine.renewedToken(isNew: renewed != nil && renewed != bearer)
          bearer = renewed ?? bearer
        case .openStream:
          action = try await open(&stream, bearer, &machine)
        case .read:
          action = try await read(&stream, &machine)
        case .wait(let delay):
          try await rest(for: delay)
          action = machine.waited()
        case .finish: return
        case .fail(let failure): throw failure
        }
      }
    } catch {
      stream = nil
      // What was not written is downloaded again; the caller has to know why it ended.
      try? await replica.end()
      throw error
    }
  }

  // MARK: Steps

  private struct OpenStream {
    /// The subscriptions that it was opened with.
    var version: Int
    var chunks: TransportBody.AsyncIterator
    var splitter = LineSplitter()
  }

  /// Waits, but not when something else is subscribed to: that may be what the last attempt failed for.
  private func rest(for delay: Duration) async throws {
    let sleep = options.sleep
    do {
      try await registry.whileCurrent(registry.current.version) { try await sleep(delay) }
    } catch is CancellationError {
      try Task.checkCancellation()
    }
  }

  private func fetchToken() async throws -> String {
    do {
      return try await token()
    } catch let error as CancellationError {
      throw error
    } catch let failure as SyncFailure {
      throw failure
    } catch {
      throw SyncFailure(
        kind: .token, code: "SLUICE_CLIENT_TOKEN", message: "There is no token for the gateway.")
    }
  }

  private func open(
    _ stream: inout OpenStream?, _ bearer: String, _ machine: inout SyncStateMachine
  ) async throws -> SyncStateMachine.Action {
    do {
      let (version, subscriptions) = registry.current
      machine.opening(with: subscriptions)
      let start = try await replica.begin()
      let request = StreamRequest(
        clientID: start.clientID, schema: start.schema, buckets: start.positions,
        parametersJSON: options.parameters,
        subscriptions: subscriptions, includeDefaults: options.includesDefaults)
      let call = TransportRequest(
        method: "POST", url: url + "/v1/stream",
        headers: [
          ("Authorization", "Bearer " + bearer), ("Content-Type", "application/json"),
          ("Accept", "application/x-ndjson"),
        ], body: request.encoded())
      let transport = transport
      let response = try await registry.whileCurrent(version) { try await transport.send(call) }
      guard response.status == 200 else {
        let body = try await response.body.collect(upTo: 64 << 10)
        return machine.refused(
          status: response.status, SyncFailure(status: response.status, body: body),
          retryAfter: response.header("Retry-After").flatMap { Int64($0) }.map {
            .seconds(min(max($0, 0), 3600))
          }, jitter: options.jitter())
      }
      stream = OpenStream(version: version, chunks: response.body.makeAsyncIterator())
      return machine.opened()
    } catch is CancellationError {
      try Task.checkCancellation()
      return machine.subscriptionsChanged()
    } catch {
      return machine.failed(SyncFailure(error), jitter: options.jitter())
    }
  }

  /// Takes in the next line.
  private func read(
    _ stream: inout OpenStream?, _ machine: inout SyncStateMachine
  ) async throws -> SyncStateMachine.Action {
    do {
      while let line = try stream?.splitter.next() {
        let event = try await replica.receive(line)
        var checkpoint: CheckpointTime?
        if case .applied(let applied) = event {
          checkpoint = try await replica.lastCheckpoint()
          checkpointHub.publish(applied)
        }
        return machine.received(event, checkpoint: checkpoint, jitter: options.jitter())
      }
      guard let open = stream,
        let chunk = try await registry.whileCurrent(
          open.version,
          {
            var chunks = open.chunks
            return try await chunks.next()
          })
      else { return machine.streamEnded(jitter: options.jitter()) }
      stream?.splitter.append(chunk)
      return .read
    } catch is CancellationError {
      try Task.checkCancellation()
      return machine.subscriptionsChanged()
    } catch {
      return machine.failed(SyncFailure(error), jitter: options.jitter())
    }
  }
}
