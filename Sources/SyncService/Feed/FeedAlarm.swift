internal import Synchronization

/// Wakes one sleeper; a ring while it is awake is remembered.
final class FeedAlarm: Sendable {
  private struct State {
    var isRinging = false
    var sleeper: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func ring() {
    let sleeper = state.withLock { state in
      let sleeper = state.sleeper.take()
      if sleeper == nil { state.isRinging = true }
      return sleeper
    }
    sleeper?.resume()
  }

  /// Returns when it rings, when `duration` is over, or when the task is cancelled.
  func wait(atMost duration: Duration) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await Task.sleep(for: duration) }
      group.addTask { await self.sleepUntilRung() }
      await group.next()
      group.cancelAll()
    }
  }

  private func sleepUntilRung() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isAwake = state.withLock { state in
          if state.isRinging || Task.isCancelled {
            state.isRinging = false
            return true
          }
          state.sleeper = continuation
          return false
        }
        if isAwake { continuation.resume() }
      }
    } onCancel: {
      let sleeper = state.withLock { $0.sleeper.take() }
      sleeper?.resume()
    }
  }
}
