import SyncProtocol
import Synchronization

/// What the application subscribes to now. Any thread changes it; the client that reads a stream is interrupted then.
final class SubscriptionRegistry: Sendable {
  private struct State {
    var entries: [(id: Int, subscription: StreamSubscription)] = []
    var nextID = 0
    /// Rises with every change of what is asked of the gateway.
    var version = 0
    var interrupt: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// The number of the present subscriptions, and each of them once.
  var current: (version: Int, subscriptions: [StreamSubscription]) {
    state.withLock { ($0.version, Self.distinct($0.entries)) }
  }

  func add(_ subscription: StreamSubscription) -> Int {
    change { state in
      state.nextID += 1
      state.entries.append((state.nextID, subscription))
      return state.nextID
    }
  }

  func remove(_ id: Int) {
    change { $0.entries.removeAll { $0.id == id } }
  }

  /// Runs `body`, which is cancelled as soon as the subscriptions are not those of `version` any more.
  func whileCurrent<Value: Sendable>(
    _ version: Int, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let task = Task { try await body() }
    let isCurrent = state.withLock { state in
      state.interrupt = { task.cancel() }
      return state.version == version
    }
    if !isCurrent { task.cancel() }
    defer { state.withLock { $0.interrupt = nil } }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    let (result, interrupt) = state.withLock { state in
      let before = Self.distinct(state.entries)
      let result = body(&state)
      guard Self.distinct(state.entries) != before else {
        return (result, nil as (@Sendable () -> Void)?)
      }
      state.version += 1
      return (result, state.interrupt)
    }
    interrupt?()
    return result
  }

  private static func distinct(
    _ entries: [(id: Int, subscription: StreamSubscription)]
  ) -> [StreamSubscription] {
    entries.reduce(into: []) { list, entry in
      if !list.contains(entry.subscription) { list.append(entry.subscription) }
    }
  }
}
