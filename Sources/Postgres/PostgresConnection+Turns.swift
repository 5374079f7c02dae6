internal import CPostgres
internal import Dispatch
internal import EventLoop

/// Whose turn it is on a connection: first come, first served.
struct TurnQueue {
  enum Arrival: Equatable { case proceed, wait }

  private(set) var current: Int?
  private var waiting: [Int] = []

  mutating func arrive(_ id: Int) -> Arrival {
    if current == nil {
      current = id
      return .proceed
    }
    waiting.append(id)
    return .wait
  }

  /// Ends the current turn, and returns whose is next.
  mutating func finish() -> Int? {
    current = waiting.isEmpty ? nil : waiting.removeFirst()
    return current
  }

  func isWaiting(_ id: Int) -> Bool { waiting.contains(id) }

  /// Takes a waiting caller out, and returns whether it was waiting.
  mutating func leave(_ id: Int) -> Bool {
    guard let index = waiting.firstIndex(of: id) else { return false }
    waiting.remove(at: index)
    return true
  }
}

extension PostgresConnection {
  /// Runs `body` when all calls made before are over; cancels it on the server with its task, unless it
  /// is shielded.
  func inTurn<R: Sendable>(
    isShielded: Bool, _ body: () async throws -> R
  ) async throws -> R {
    if !isShielded { try Task.checkCancellation() }
    nextID += 1
    let id = nextID
    if isShielded {
      _ = await takeTurn(id)
      defer { finishTurn() }
      return try await body()
    }
    return try await withTaskCancellationHandler {
      guard await takeTurn(id) else { throw CancellationError() }
      defer { finishTurn() }
      try Task.checkCancellation()
      running = id
      let result: Result<R, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      running = nil
      await finishCancels()
      // 57014 has other causes as well: a timeout, or an administrator.
      if Task.isCancelled, case .failure(let error as PostgresError) = result,
        error.code == "57014"
      {
        throw CancellationError()
      }
      return try result.get()
    } onCancel: {
      loop.onLoop {
        // On the loop, which is this actor's executor.
        self.assumeIsolated { $0.cancelCall(id) }
      }
    }
  }

  /// Cancels the statement that runs now, whose caller gets the error 57014.
  package func cancelRunning() {
    if let running { cancelCall(running) }
  }

  private func takeTurn(_ id: Int) async -> Bool {
    guard turns.arrive(id) == .wait else { return true }
    return await withCheckedContinuation { continuation in
      if turns.isWaiting(id) {
        waiting[id] = continuation
      } else {
        continuation.resume(returning: turns.current == id)
      }
    }
  }

  private func finishTurn() {
    guard let next = turns.finish() else { return }
    waiting.removeValue(forKey: next)?.resume(returning: true)
  }

  private func cancelCall(_ id: Int) {
    if turns.leave(id) {
      waiting.removeValue(forKey: id)?.resume(returning: false)
      return
    }
    guard running == id, !cancelIsWanted else { return }
    cancelIsWanted = true
    let deadline = loop.after(cancelTimeout) { [weak self] in
      // On the loop, which is this actor's executor.
      self?.assumeIsolated { $0.giveUpCancelled() }
    }
    cancelDeadline = deadline
    sendCancel(id)
  }

  private func sendCancel(_ id: Int) {
    guard running == id, !closed, let raw = socket.raw, let cancel = PQgetCancel(raw) else {
      return
    }
    cancelIsInFlight = true
    let request = CancelRequest(raw: cancel)
    // PQcancel makes a connection of its own and blocks meanwhile: neither the loop nor the pool of
    // threads that tasks share may wait for it, and no task group has such a thread.
    DispatchQueue.global().async { [loop, weak self] in
      request.send()
      loop.onLoop { [weak self] in
        // On the loop, which is this actor's executor.
        self?.assumeIsolated { $0.cancelWasSent(id) }
      }
    }
  }

  private func cancelWasSent(_ id: Int) {
    cancelIsInFlight = false
    cancelWaiter?.resume()
    cancelWaiter = nil
    guard running == id else { return }
    // The request can have come before the statement, and then had no effect.
    loop.after(.milliseconds(250)) { [weak self] in
      // On the loop, which is this actor's executor.
      self?.assumeIsolated { $0.sendCancel(id) }
    }
  }

  /// The server did not end the statement, or did not take the request, in time.
  private func giveUpCancelled() {
    socket.giveUp()
    cancelWaiter?.resume()
    cancelWaiter = nil
  }

  /// Waits for a cancel request under way, which would otherwise hit the next statement.
  private func finishCancels() async {
    guard cancelIsWanted else { return }
    if cancelIsInFlight {
      await withCheckedContinuation { continuation in
        if cancelIsInFlight { cancelWaiter = continuation } else { continuation.resume() }
      }
    }
    cancelIsWanted = false
    cancelDeadline?.cancel()
    cancelDeadline = nil
  }
}

/// What PQcancel needs, independent of the connection.
///
/// `@unchecked`: used by one thread after the other, and freed once.
private final class CancelRequest: @unchecked Sendable {
  private let raw: OpaquePointer

  init(raw: OpaquePointer) { self.raw = raw }
  deinit { PQfreeCancel(raw) }

  func send() {
    var message = [CChar](repeating: 0, count: 256)
    _ = PQcancel(raw, &message, Int32(message.count))
  }
}
