internal import CCurl
internal import Synchronization

/// One exchange, between the thread of its `CurlLoop` and the tasks that wait for its parts.
final class CurlTransfer: Sendable {
  struct Head {
    var status = 0
    var headers: [(name: String, value: String)] = []
  }

  private struct State {
    var head = Head()
    var headSize = 0
    var headIsComplete = false
    var headWaiter: CheckedContinuation<Head, any Error>?
    var pending: [UInt8] = []
    var chunkWaiter: CheckedContinuation<[UInt8]?, any Error>?
    var isPaused = false
    var end: Result<Void, any Error>?
    var lastActivity = ContinuousClock.now
  }

  private static let headLimit = 64 << 10

  private let loop: CurlLoop
  private let idleTimeout: Duration
  private let bufferLimit: Int
  private let state = Mutex(State())

  init(loop: CurlLoop, idleTimeout: Duration, bufferLimit: Int) {
    self.loop = loop
    self.idleTimeout = idleTimeout
    self.bufferLimit = bufferLimit
  }

  // MARK: The consumer's side

  func head() async throws -> Head {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<Head, any Error>? = state.withLock { state in
          if state.headIsComplete { return .success(state.head) }
          if case .failure(let error) = state.end { return .failure(error) }
          state.headWaiter = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      abandon()
    }
  }

  /// What has arrived since the last call, or the wait for it; nil at the end.
  func nextChunk() async throws -> [UInt8]? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let (result, resumes): (Result<[UInt8]?, any Error>?, Bool) = state.withLock { state in
          precondition(state.chunkWaiter == nil, "one consumer reads a body")
          if !state.pending.isEmpty {
            let chunk = state.pending
            state.pending = []
            let resumes = state.isPaused
            state.isPaused = false
            if resumes { state.lastActivity = .now }
            return (.success(chunk), resumes)
          }
          if let end = state.end { return (end.map { nil }, false) }
          state.chunkWaiter = continuation
          return (nil, false)
        }
        if resumes { loop.resume(self) }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      abandon()
    }
  }

  /// Ends the exchange, if it has not ended: what waits is resumed with `CancellationError`.
  func abandon() {
    if end(.failure(CancellationError())) { loop.remove(self) }
  }

  // MARK: The loop's side

  /// Takes a line of the head, its line break included; false refuses the response.
  func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    let (waiter, head, isAccepted) = state.withLock {
      state -> (CheckedContinuation<Head, any Error>?, Head, Bool) in
      state.lastActivity = .now
      // What comes after the body is a trailer, which nobody asked for.
      if state.headIsComplete { return (nil, state.head, true) }
      state.headSize += line.count
      guard state.headSize <= Self.headLimit else { return (nil, state.head, false) }
      let text =
        String(decoding: line, as: UTF8.self)
        .split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
      if text.hasPrefix("HTTP/") {
        let fields = text.split(separator: " ", maxSplits: 2)
        guard fields.count > 1, let status = Int(fields[1]) else { return (nil, state.head, false) }
        state.head = Head(status: status)
      } else if text.isEmpty {
        if state.head.status < 200 { return (nil, state.head, true) }
        state.headIsComplete = true
        defer { state.headWaiter = nil }
        return (state.headWaiter, state.head, true)
      } else if let colon = text.firstIndex(of: ":") {
        let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        state.head.headers.append((String(text[..<colon]), String(value)))
      }
      return (nil, state.head, true)
    }
    waiter?.resume(returning: head)
    return isAccepted
  }

  /// Takes bytes of the body; false when the consumer has to catch up first.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let (waiter, isTaken) = state.withLock {
      state -> (CheckedContinuation<[UInt8]?, any Error>?, Bool) in
      if let waiter = state.chunkWaiter {
        state.chunkWaiter = nil
        state.lastActivity = .now
        return (waiter, true)
      }
      guard state.pending.isEmpty || state.pending.count + bytes.count <= bufferLimit else {
        state.isPaused = true
        return (nil, false)
      }
      state.lastActivity = .now
      state.pending.append(contentsOf: bytes)
      return (nil, true)
    }
    waiter?.resume(returning: Array(bytes))
    return isTaken
  }

  /// When the transfer has been silent for too long, unless the silence is the consumer's.
  var idleDeadline: ContinuousClock.Instant? {
    state.withLock { $0.isPaused ? nil : $0.lastActivity.advanced(by: idleTimeout) }
  }

  /// Records the end and resumes who waits; false when the transfer had ended before.
  @discardableResult
  func end(_ result: Result<Void, any Error>) -> Bool {
    let waiters = state.withLock {
      state -> (CheckedContinuation<Head, any Error>?, CheckedContinuation<[UInt8]?, any Error>?)?
      in
      guard state.end == nil else { return nil }
      state.end = result
      defer { (state.headWaiter, state.chunkWaiter) = (nil, nil) }
      return (state.headWaiter, state.chunkWaiter)
    }
    guard let (head, chunk) = waiters else { return false }
    head?.resume(
      with: result.flatMap {
        .failure(TransportError(.badResponse, "the response ended before its head"))
      })
    chunk?.resume(with: result.map { nil })
    return true
  }
}
