internal import BucketStorage
package import FoundationEssentials
package import HTTPServer
package import ServiceRuntime
internal import SyncProtocol
package import TokenAuth

/// The gateway's routes: who asks, what for, and whether it is answered at all.
///
/// `POST /v1/stream`, `GET /v1/buckets`, `GET /v1/buckets/{name}/rows`, `GET /v1/schema`, and for
/// operators `GET /health`, `/ready` and `/metrics`.
package final class Gateway: Service {
  package struct Configuration: Sendable {
    package var session = StreamSession.Configuration()
    package var pageRows = 5000
    package var retryAfter: ClosedRange<Int> = 1...8
    /// How long open streams may take to say their last line.
    package var drainTime: Duration = .seconds(5)

    package init() {}
  }

  let source: any StreamSource
  let feed: LiveFeed
  let gate: AdmissionGate
  let configuration: Configuration
  let streamMetrics: StreamMetrics
  private let verifier: TokenVerifier
  private let metrics: Metrics
  private let observer: any Observer
  private let now: @Sendable () -> Date

  package init(
    source: any StreamSource, feed: LiveFeed, gate: AdmissionGate, verifier: TokenVerifier,
    configuration: Configuration = Configuration(), metrics: Metrics, observer: any Observer,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.source = source
    self.feed = feed
    self.gate = gate
    self.verifier = verifier
    self.configuration = configuration
    self.metrics = metrics
    streamMetrics = StreamMetrics(metrics)
    self.observer = observer
    self.now = now
  }

  /// Answers one request.
  @Sendable package func handle(_ request: HTTPRequest, _ responder: HTTPResponder) async {
    do {
      try await route(request, responder)
    } catch let refusal as Refusal {
      try? await responder.respond(refusal)
    } catch let error as ProtocolError {
      // The client's own mistake, which is nothing to tell the operator.
      try? await responder.respond(Refusal(for: error))
    } catch is HTTPClientGone {
      return
    } catch {
      observer.observe(
        .error(
          "request.failed", ["route": .string(routeName(request))],
          error: StorageError.explaining(error)))
      try? await responder.respond(Refusal(for: error))
    }
  }

  private func route(_ request: HTTPRequest, _ responder: HTTPResponder) async throws {
    let path = request.segments
    switch path.first {
    case "health" where path.count == 1:
      try require("GET", request)
      try await responder.respond(json: Array("{\"status\":\"ok\"}\n".utf8))
    case "ready" where path.count == 1:
      try require("GET", request)
      try await answerReady(responder)
    case "metrics" where path.count == 1:
      try require("GET", request)
      try await answerMetrics(responder)
    case "v1":
      try await route(version1: Array(path.dropFirst()), request, responder)
    default:
      throw Refusal.noRoute
    }
  }

  private func route(
    version1 path: [String], _ request: HTTPRequest, _ responder: HTTPResponder
  ) async throws {
    switch path {
    case ["stream"]:
      try require("POST", request)
      try await stream(request, responder, for: try await authenticate(request))
    case ["schema"]:
      try require("GET", request)
      _ = try await authenticate(request)
      try await answerSchema(responder)
    case ["buckets"]:
      try require("GET", request)
      try await answerBuckets(request, responder, for: try await authenticate(request))
    case _ where path.count == 3 && path[0] == "buckets" && path[2] == "rows":
      try require("GET", request)
      let token = try await authenticate(request)
      try await answerRows(of: BucketName(path[1]), request, responder, for: token)
    default:
      throw Refusal.noRoute
    }
  }

  private func require(_ method: String, _ request: HTTPRequest) throws {
    // HEAD is GET, of which the server leaves the body out.
    guard request.method == method || (method == "GET" && request.method == "HEAD") else {
      throw Refusal.method(allowed: method == "GET" ? "GET, HEAD" : method)
    }
  }

  private func authenticate(_ request: HTTPRequest) async throws -> VerifiedToken {
    guard let header = request.headers["authorization"] else { throw Refusal.noToken }
    let parts = header.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, ["bearer", "token"].contains(parts[0].lowercased()), !parts[1].isEmpty
    else {
      throw Refusal.noToken
    }
    do {
      return try await verifier.verify(String(parts[1]), now: now())
    } catch {
      throw Refusal(unauthorized: error)
    }
  }

  /// The route without what the client put into it.
  private func routeName(_ request: HTTPRequest) -> String {
    request.segments.count == 4
      ? "/v1/buckets/{name}/rows" : "/" + request.segments.prefix(2).joined(separator: "/")
  }

  // MARK: Streams

  private func stream(
    _ request: HTTPRequest, _ responder: HTTPResponder, for token: VerifiedToken
  ) async throws {
    let body = try StreamRequest(decoding: request.body)
    if let refusal = gate.enter() {
      throw Refusal.overloaded(refusal, retryAfter: .random(in: configuration.retryAfter))
    }
    let hasStarted = Flag()
    defer { gate.leave(hadStarted: hasStarted.isSet) }
    let writer = try await responder.start(
      status: 200,
      headers: [
        "Content-Type": "application/x-ndjson", "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
      ])
    let follower = FeedFollower()
    await writer.onClose { follower.close() }
    let session = StreamSession(
      request: body, claimsJSON: token.claimsJSON, tokenExpiry: token.expiresAt, source: source,
      feed: feed, configuration: configuration.session, metrics: streamMetrics, now: now)
    let gate = gate
    let ending = await session.run(to: BodyLines(writer: writer), following: follower) {
      if hasStarted.set() { gate.started() }
    }
    await writer.finish()
    observer.observe(
      .info("stream.ended", ["reason": .string(ending.name)]))
  }

  // MARK: Stopping

  package var name: String { "streams" }

  /// Waits to be asked to stop; then lets no stream in and ends those that are open.
  package func run() async throws {
    await StopSignal.wait()
    gate.stop()
    await feed.stop()
    let deadline = ContinuousClock.now + configuration.drainTime
    while gate.openCount > 0, ContinuousClock.now < deadline {
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  // MARK: Operators

  private func answerReady(_ responder: HTTPResponder) async throws {
    do {
      _ = try await source.schema()
      let head = try await source.head()
      try await responder.respond(
        json: Array("{\"status\":\"ready\",\"tick\":\(head.number)}\n".utf8))
    } catch {
      // Unlike clients, operators are told why.
      throw Refusal(
        status: 503, ServiceErrors.body(for: StorageError.explaining(error)),
        headers: [("Retry-After", "2")])
    }
  }

  private func answerMetrics(_ responder: HTTPResponder) async throws {
    streamMetrics.open.set(gate.openCount)
    streamMetrics.starting.set(gate.startingCount)
    streamMetrics.followers.set(await feed.followerCount)
    try await responder.respond(
      status: 200, headers: ["Content-Type": "text/plain; version=0.0.4"],
      body: Array(metrics.text().utf8))
  }
}

/// A response's body as the place where a session's lines go.
private struct BodyLines: LineWriter {
  var writer: HTTPBodyWriter

  func write(_ bytes: SharedBytes) async throws {
    try await writer.write(bytes)
  }
}

extension StreamSession.Ending {
  fileprivate var name: String {
    switch self {
    case .clientLeft: "client left"
    case .tokenExpired: "token expired"
    case .refused(let error): error.code
    case .stopped: "stopped"
    }
  }
}
