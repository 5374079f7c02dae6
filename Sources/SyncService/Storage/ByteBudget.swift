internal import Synchronization

/// A number of bytes that are lent: what is large and on its way to readers must fit in it.
///
/// First come, first served. What is larger than the whole budget is lent when nothing else is.
package final class ByteBudget: Sendable {
  /// Bytes lent, until nobody holds this any more.
  package final class Lease: Sendable {
    private let budget: ByteBudget
    private let bytes: Int

    fileprivate init(_ budget: ByteBudget, _ bytes: Int) {
      self.budget = budget
      self.bytes = bytes
    }

    deinit { budget.giveBack(bytes) }
  }

  private struct Waiter {
    var id: Int
    var bytes: Int
    var continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var free: Int
    var waiting: [Waiter] = []
    var nextID = 0

    /// Serves those who wait, as far as it goes.
    mutating func serve() -> [Waiter] {
      var served: [Waiter] = []
      while let first = waiting.first, first.bytes <= free {
        free -= first.bytes
        served.append(waiting.removeFirst())
      }
      return served
    }
  }

  private let total: Int
  private let state: Mutex<State>

  package init(_ bytes: Int) {
    precondition(bytes > 0, "a budget has something to lend")
    total = bytes
    state = Mutex(State(free: bytes))
  }

  /// What is not lent now.
  package var free: Int { state.withLock { $0.free } }

  /// How many wait.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Lends at once, or not: nobody is passed who waits.
  package func lease(_ bytes: Int) -> Lease? {
    let bytes = min(bytes, total)
    let isLent = state.withLock { state in
      guard state.waiting.isEmpty, bytes <= state.free else { return false }
      state.free -= bytes
      return true
    }
    return isLent ? Lease(self, bytes) : nil
  }

  /// Lends as soon as it can; nil when `patience` is over before, or the task is cancelled.
  package func lease(_ bytes: Int, within patience: Duration) async -> Lease? {
    if let lease = lease(bytes) { return lease }
    let bytes = min(bytes, total)
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    return await withTaskGroup(of: Lease?.self) { group in
      group.addTask { await self.wait(id, bytes) ? Lease(self, bytes) : nil }
      group.addTask {
        try? await Task.sleep(for: patience)
        return nil
      }
      var lease: Lease?
      for await result in group {
        // It may have been served at the last moment.
        lease = lease ?? result
        group.cancelAll()
      }
      return lease
    }
  }

  /// True when it was served, false when it was told to leave.
  private func wait(_ id: Int, _ bytes: Int) async -> Bool {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isServed: Bool? = state.withLock { state in
          // Cancelling sets this before it calls the handler below, which needs the lock as well.
          if Task.isCancelled { return false }
          if state.waiting.isEmpty, bytes <= state.free {
            state.free -= bytes
            return true
          }
          state.waiting.append(Waiter(id: id, bytes: bytes, continuation: continuation))
          return nil
        }
        if let isServed { continuation.resume(returning: isServed) }
      }
    } onCancel: {
      leave(id)
    }
  }

  /// Ends a wait, if it goes on.
  private func leave(_ id: Int) {
    let (leaver, served) = state.withLock { state -> (Waiter?, [Waiter]) in
      guard let place = state.waiting.firstIndex(where: { $0.id == id }) else { return (nil, []) }
      let leaver = state.waiting.remove(at: place)
      return (leaver, state.serve())
    }
    leaver?.continuation.resume(returning: false)
    for waiter in served { waiter.continuation.resume(returning: true) }
  }

  private func giveBack(_ bytes: Int) {
    let served = state.withLock { state in
      state.free += bytes
      return state.serve()
    }
    for waiter in served { waiter.continuation.resume(returning: true) }
  }
}
