internal import CPostgres
internal import EventLoop
internal import Synchronization

/// One libpq connection and the readiness of its descriptor. It sends nothing of its own accord.
///
/// `@unchecked`: everything but `isClosed` is used on the loop's thread only.
final class PostgresSocket: @unchecked Sendable {
  /// The connection; nil once closed.
  private(set) var raw: OpaquePointer?
  /// Called for each notification, on the loop.
  var onNotification: ((PostgresNotification) -> Void)?
  /// Called once, on the loop, when the connection is lost or closed.
  var onClose: (() -> Void)?

  private let loop: EventLoop
  private let closed = Atomic<Bool>(false)
  private var reader: LoopEvent?
  private var writer: LoopEvent?
  private var waiter: CheckedContinuation<Void, Never>?
  private var isLost = false
  /// Woken, and not yet run: reading on could find the end, upon which libpq forgets what it has read.
  private var isWaking = false
  /// Woken while nobody slept: the next sleep ends at once.
  private var wokenEarly = false

  /// Takes over a connection that is being made.
  init(raw: OpaquePointer, loop: EventLoop) {
    self.raw = raw
    self.loop = loop
    // The default prints notices.
    PQsetNoticeReceiver(raw, { _, _ in }, nil)
  }

  deinit {
    // An open socket has a watch, and is closed on the loop before its owner lets it go.
    if let raw { PQfinish(raw) }
  }

  /// Whether the connection is lost or closed. From any thread.
  var isClosed: Bool { closed.load(ordering: .acquiring) }

  // MARK: Connecting

  /// Waits until the descriptor, which may be another at each step, can be read or written.
  func waitWhileConnecting(for readiness: LoopReadiness) async {
    guard let raw, !isLost else { return }
    let watch = loop.watch(PQsocket(raw), for: readiness, repeats: false) { [weak self] _ in
      self?.wake()
    }
    await sleepUntilWoken()
    watch.cancel()
  }

  /// Begins to watch the descriptor of a connection just made.
  func startReading() {
    guard let raw else { return }
    PQsetnonblocking(raw, 1)
    reader = loop.watch(PQsocket(raw), for: .read) { [weak self] _ in self?.readable() }
  }

  /// Gives the connection up: whoever waits for it finds it lost.
  func giveUp() {
    guard !isLost else { return }
    isLost = true
    closed.store(true, ordering: .releasing)
    reader?.cancel()
    writer?.cancel()
    wake()
    onClose?()
    onClose = nil
  }

  func close() {
    giveUp()
    if let raw { PQfinish(raw) }
    raw = nil
  }

  // MARK: Exchange

  /// Sends what libpq has buffered and reads results until `take` returns true. It is given nil where
  /// the results of one command end, and owns the results it is given.
  func exchange(_ take: (OpaquePointer?) -> Bool) async throws(PostgresError) {
    // Reading results, libpq comes upon notifications as well.
    defer { deliverNotifications() }
    while true {
      flush()
      guard let raw else { throw .closed }
      while !isLost && PQisBusy(raw) == 0 {
        if take(PQgetResult(raw)) { return }
      }
      if isLost { throw lostError() }
      await sleepUntilWoken()
    }
  }

  /// Sends until nothing is buffered.
  func drain() async throws(PostgresError) {
    while !flush() {
      guard raw != nil, !isLost else { throw lostError() }
      await sleepUntilWoken()
    }
    guard raw != nil, !isLost else { throw lostError() }
  }

  /// Sends what can be sent now, and returns whether that was everything.
  @discardableResult
  func flush() -> Bool {
    guard let raw, !isLost else { return false }
    switch PQflush(raw) {
    case 0:
      return true
    case 1:
      if let writer {
        writer.arm()
      } else {
        writer = loop.watch(PQsocket(raw), for: .write, repeats: false) { [weak self] _ in
          self?.wake()
        }
      }
      return false
    default:
      // What the server said last may still be there to read.
      PQconsumeInput(raw)
      giveUp()
      return false
    }
  }

  /// The error to report for a lost connection: the server's last word if there was one.
  private func lostError() -> PostgresError {
    guard let raw else { return .closed }
    var error = PostgresError.connection(PQerrorMessage(raw).map { String(cString: $0) } ?? "")
    // Nil stands between results, and twice at their end. While libpq is busy, asking it would block.
    var wasNil = false
    while PQisBusy(raw) == 0 {
      guard let result = PQgetResult(raw) else {
        if wasNil { break }
        wasNil = true
        continue
      }
      wasNil = false
      let status = PQresultStatus(result)
      if status == PGRES_FATAL_ERROR {
        let last = PostgresError(result: result, kind: .connection)
        if !last.code.isEmpty { error = last }
      }
      PQclear(result)
      // A result that stands for the end of the connection could come for ever.
      if status == PGRES_FATAL_ERROR || status == PGRES_COPY_IN { break }
    }
    return error
  }

  private func readable() {
    guard let raw, !isLost, !isWaking else { return }
    let isAlive = PQconsumeInput(raw) == 1
    deliverNotifications()
    if !isAlive {
      giveUp()
    } else if PQisBusy(raw) == 0 {
      wake()
    }
  }

  private func deliverNotifications() {
    while let raw, let notification = PQnotifies(raw) {
      onNotification?(
        PostgresNotification(
          channel: String(cString: notification.pointee.relname),
          payload: String(cString: notification.pointee.extra),
          processID: notification.pointee.be_pid))
      PQfreemem(notification)
    }
  }

  private func sleepUntilWoken() async {
    await withCheckedContinuation { continuation in
      if isLost || wokenEarly {
        continuation.resume()
      } else {
        waiter = continuation
      }
    }
    isWaking = false
    wokenEarly = false
  }

  private func wake() {
    guard let waiter else {
      wokenEarly = true
      return
    }
    self.waiter = nil
    isWaking = true
    waiter.resume()
  }
}
