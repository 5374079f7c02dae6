internal import CLibevent
internal import EventLoop
internal import Glibc
internal import ServiceRuntime
internal import Synchronization

/// One connection: requests one after another, each answered by a task of the handler.
///
/// A peer that closes its sending side while it is being answered is taken to have left.
actor HTTPConnection {
  private enum Phase: Equatable {
    /// Waiting for a request, or in its head.
    case head
    case body
    case handling
    /// The last response is queued: once it is out, `lingering`.
    case closing
    /// Reading and dropping what the peer still sends, so that it can read the last response.
    case lingering
    case closed
  }

  private enum Response: Equatable {
    case none
    case streaming(chunked: Bool, discards: Bool)
    case finished
  }

  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private nonisolated let core: HTTPServerCore
  private nonisolated let queued = Atomic<Int>(0)
  private let remoteAddress: String
  private let isSurplus: Bool

  private var event: OpaquePointer?
  private var parser: HTTPRequestParser
  private var phase = Phase.head
  private var response = Response.none
  private var exchange = 0
  private var isHandlerRunning = false
  private var request: (method: String, keepsAlive: Bool, isVersion10: Bool) = ("", true, false)
  private var requestStart = ContinuousClock.now
  private var task: Task<Void, Never>?
  private var writeWaiters: [Int: CheckedContinuation<Void, any Error>] = [:]
  private var nextWaiter = 0
  private var closeHandlers: [@Sendable () -> Void] = []
  private var deadline: ContinuousClock.Instant?

  init(core: HTTPServerCore, remoteAddress: String, isSurplus: Bool) {
    self.core = core
    self.loop = core.loop
    self.remoteAddress = remoteAddress
    self.isSurplus = isSurplus
    parser = HTTPRequestParser(
      maxHeaderBytes: core.configuration.maxHeaderBytes,
      maxBodyBytes: core.configuration.maxBodyBytes)
  }

  nonisolated var queuedBytes: Int { queued.load(ordering: .relaxed) }

  // MARK: Opening and closing

  /// Takes over the descriptor, which must not block; false when there is no memory for it.
  func open(_ descriptor: Int32) -> Bool {
    event = bufferevent_socket_new(
      loop.base, descriptor, Int32(BEV_OPT_CLOSE_ON_FREE.rawValue))
    guard let event else { return false }
    // Until `close`, which gives it back, the callbacks keep the connection.
    let context = Unmanaged.passRetained(self).toOpaque()
    bufferevent_setcb(
      event,
      { _, context in HTTPConnection.from(context)?.assumeIsolated { $0.readable() } },
      { _, context in HTTPConnection.from(context)?.assumeIsolated { $0.written() } },
      { _, what, context in HTTPConnection.from(context)?.assumeIsolated { $0.ended(what) } },
      context)
    evbuffer_add_cb(
      bufferevent_get_output(event),
      { _, change, context in
        guard let change, let connection = HTTPConnection.from(context) else { return }
        let size = change.pointee.orig_size + change.pointee.n_added - change.pointee.n_deleted
        connection.queued.store(size, ordering: .relaxed)
      }, context)
    let limit = core.configuration.sendQueueLimit
    bufferevent_setwatermark(event, Int16(EV_WRITE), limit, 0)
    bufferevent_setwatermark(event, Int16(EV_READ), 0, 64 << 10)
    bufferevent_set_max_single_write(event, 128 << 10)
    bufferevent_set_max_single_read(event, 64 << 10)
    var timeout = timeval(core.configuration.slowReaderTimeout)
    bufferevent_set_timeouts(event, nil, &timeout)
    bufferevent_enable(event, Int16(EV_READ | EV_WRITE))
    deadline = .now.advanced(by: core.configuration.headTimeout)
    return true
  }

  func close() {
    guard phase != .closed else { return }
    phase = .closed
    deadline = nil
    endExchange()
    resumeWaiters(throwing: HTTPClientGone())
    task?.cancel()
    if let event {
      self.event = nil
      bufferevent_free(event)
      Unmanaged.passUnretained(self).release()
    }
    core.assumeIsolated { $0.remove(self) }
  }

  /// No further request: closes at once when none is under way.
  func drain() {
    if phase == .head, !parser.hasBegun, outputLength == 0 { close() }
  }

  /// Called now and then: closes what has taken too long.
  func checkDeadline(_ now: ContinuousClock.Instant) {
    guard let deadline, deadline <= now else { return }
    switch phase {
    case .head where parser.hasBegun, .body: refuse(.timeout)
    case .head where outputLength > 0: break
    case .head, .lingering: close()
    case .closing, .handling, .closed: break
    }
  }

  private static nonisolated func from(_ context: UnsafeMutableRawPointer?) -> HTTPConnection? {
    context.map { Unmanaged<HTTPConnection>.fromOpaque($0).takeUnretainedValue() }
  }

  // MARK: Reading

  private func readable() {
    guard let input = bufferevent_get_input(event) else { return }
    if phase == .lingering || phase == .closing {
      evbuffer_drain(input, evbuffer_get_length(input))
    }
    while phase == .head || phase == .body, evbuffer_get_length(input) > 0 {
      let count = evbuffer_get_contiguous_space(input)
      let bytes = UnsafeRawBufferPointer(start: evbuffer_pullup(input, count), count: count)
      if phase == .head, !parser.hasBegun {
        deadline = .now.advanced(by: core.configuration.headTimeout)
      }
      do throws(HTTPRefusal) {
        let (used, event) = try parser.consume(bytes)
        evbuffer_drain(input, used)
        switch event {
        case .needsMore: break
        case .bodyFollows(let expectsContinue):
          phase = .body
          deadline = .now.advanced(by: core.configuration.bodyTimeout)
          if expectsContinue, evbuffer_get_length(input) == 0 {
            write("HTTP/1.1 100 Continue\r\n\r\n")
          }
        case .complete: handle(parser.takeRequest())
        }
      } catch {
        refuse(error)
      }
    }
  }

  private func handle(_ incoming: HTTPRequest) {
    var incoming = incoming
    incoming.remoteAddress = remoteAddress
    request = (incoming.method, incoming.keepsAlive, incoming.isVersion10)
    if isSurplus { return refuse(.busy) }
    phase = .handling
    deadline = nil
    exchange += 1
    response = .none
    isHandlerRunning = true
    requestStart = .now
    let responder = HTTPResponder(connection: self, exchange: exchange)
    let handler = core.handler
    // Unstructured, because it begins in a callback of the loop and not in a task: it is cancelled by
    // `close`, and a stopping server waits for its connections.
    task = StopSignal.$current.withValue(core.stopSignal) {
      Task(executorPreference: loop) { [incoming] in
        await handler(incoming, responder)
        await self.handlerReturned()
      }
    }
  }

  private func handlerReturned() {
    isHandlerRunning = false
    task = nil
    guard phase == .handling else { return }
    switch response {
    case .none:
      core.observer.observe(.error("http.unanswered"))
      refuse(.internalError)
    case .streaming: close()
    case .finished: proceed()
    }
  }

  /// After an exchange: the next request, or the end.
  private func proceed() {
    guard response == .finished, !isHandlerRunning, phase == .handling else { return }
    guard request.keepsAlive, !core.isStopping else { return closeAfterOutput() }
    phase = .head
    deadline = .now.advanced(by: core.configuration.idleTimeout)
    readable()
  }

  // MARK: Events of the socket

  private func written() {
    if outputLength <= core.configuration.sendQueueLimit { resumeWaiters() }
    if phase == .closing, outputLength == 0 { linger() }
  }

  private func ended(_ what: Int16) {
    if what & Int16(BEV_EVENT_TIMEOUT) != 0 {
      core.slowReaders.add()
      core.observer.observe(.warning("http.slow_reader", ["queued": .int(queuedBytes)]))
    }
    close()
  }

  private var outputLength: Int { evbuffer_get_length(bufferevent_get_output(event)) }

  // MARK: Closing after the last response

  /// Answers by itself and closes.
  private func refuse(_ refusal: HTTPRefusal) {
    request.keepsAlive = false
    var headers: HTTPHeaders = ["content-type": "application/json"]
    if refusal.status == 503 { headers.add("retry-after", "1") }
    writeHead(refusal.status, headers, length: refusal.body.count)
    if request.method != "HEAD" { write(refusal.body) }
    response = .finished
    closeAfterOutput()
  }

  private func closeAfterOutput() {
    phase = .closing
    deadline = nil
    if outputLength == 0 { linger() }
  }

  private func linger() {
    phase = .lingering
    shutdown(bufferevent_getfd(event), Int32(SHUT_WR))
    deadline = .now.advanced(by: .seconds(1))
    readable()
  }

  // MARK: Responding

  func respond(
    _ exchange: Int, status: Int, headers: HTTPHeaders, body: SharedBytes
  ) async throws {
    try checkIsUnanswered(exchange, headers)
    let isBodyless = status < 200 || status == 204 || status == 304
    writeHead(status, headers, length: isBodyless ? nil : body.count)
    if !isBodyless, request.method != "HEAD" { body.append(to: output) }
    response = .finished
    endExchange()
    try await waitForRoom()
    proceed()
  }

  func start(_ exchange: Int, status: Int, headers: HTTPHeaders) throws {
    try checkIsUnanswered(exchange, headers)
    if request.isVersion10 { request.keepsAlive = false }
    let isChunked = !request.isVersion10
    writeHead(status, headers, length: nil, isChunked: isChunked)
    response = .streaming(chunked: isChunked, discards: request.method == "HEAD")
  }

  func write(_ exchange: Int, _ bytes: SharedBytes) async throws {
    guard append(exchange, bytes) else { throw HTTPClientGone() }
    try await waitForRoom()
  }

  func append(_ exchange: Int, _ bytes: SharedBytes) -> Bool {
    guard exchange == self.exchange, phase == .handling,
      case .streaming(let isChunked, let discards) = response
    else { return false }
    guard !discards, !bytes.isEmpty else { return true }
    if isChunked { write(String(bytes.count, radix: 16) + "\r\n") }
    bytes.append(to: output)
    if isChunked { write("\r\n") }
    return true
  }

  func finish(_ exchange: Int) {
    guard exchange == self.exchange, phase == .handling,
      case .streaming(let isChunked, let discards) = response
    else { return }
    if isChunked, !discards { write("0\r\n\r\n") }
    response = .finished
    endExchange()
    proceed()
  }

  func onClose(_ exchange: Int, _ handler: @escaping @Sendable () -> Void) {
    guard exchange == self.exchange, phase == .handling, response != .finished else {
      return handler()
    }
    closeHandlers.append(handler)
  }

  private func checkIsUnanswered(_ exchange: Int, _ headers: HTTPHeaders) throws {
    guard phase == .handling, exchange == self.exchange else { throw HTTPClientGone() }
    guard response == .none else {
      throw HTTPResponseError(description: "the request is already answered")
    }
    for field in headers.fields {
      let isSafe = (field.name + field.value).utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
      guard isSafe, !field.name.isEmpty, !field.name.contains(":") else {
        throw HTTPResponseError(description: "a header would break its line")
      }
    }
  }

  private func endExchange() {
    if phase == .handling || phase == .closed, isHandlerRunning {
      core.requestSeconds.record(requestStart.duration(to: .now))
    }
    let handlers = closeHandlers
    closeHandlers = []
    for handler in handlers { handler() }
  }

  private func writeHead(
    _ status: Int, _ headers: HTTPHeaders, length: Int?, isChunked: Bool = false
  ) {
    core.countResponse(status)
    var head = "HTTP/1.1 \(status) \(HTTPStatus.phrase(status))\r\ndate: \(core.date())\r\n"
    for field in headers.fields { head += "\(field.name): \(field.value)\r\n" }
    if let length { head += "content-length: \(length)\r\n" }
    if isChunked { head += "transfer-encoding: chunked\r\n" }
    if core.isStopping { request.keepsAlive = false }
    if !request.keepsAlive { head += "connection: close\r\n" }
    write(head + "\r\n")
  }

  // MARK: Writing

  private var output: OpaquePointer? { bufferevent_get_output(event) }

  private func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = evbuffer_add(output, $0.baseAddress, $0.count) }
  }

  private func write(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { _ = evbuffer_add(output, $0.baseAddress, $0.count) }
  }

  private func waitForRoom() async throws {
    guard event != nil, outputLength > core.configuration.sendQueueLimit else { return }
    nextWaiter += 1
    let key = nextWaiter
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        if phase == .closed {
          continuation.resume(throwing: HTTPClientGone())
        } else if Task.isCancelled {
          continuation.resume(throwing: CancellationError())
        } else {
          writeWaiters[key] = continuation
        }
      }
    } onCancel: {
      loop.onLoop {
        self.assumeIsolated { $0.cancelWaiter(key) }
      }
    }
  }

  private func cancelWaiter(_ key: Int) {
    writeWaiters.removeValue(forKey: key)?.resume(throwing: CancellationError())
  }

  private func resumeWaiters(throwing error: (any Error)? = nil) {
    guard !writeWaiters.isEmpty else { return }
    let waiters = writeWaiters
    writeWaiters = [:]
    for waiter in waiters.values {
      if let error { waiter.resume(throwing: error) } else { waiter.resume() }
    }
  }
}

extension timeval {
  init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
  }
}
