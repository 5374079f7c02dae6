import Synchronization

/// Hands each value to everyone who listens.
final class StatusHub<Value: Sendable>: Sendable {
  private struct State {
    var latest: Value?
    var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
    var nextListener = 0
  }

  private let state: Mutex<State>
  private let bufferSize: Int
  private let replaysLatest: Bool

  init(latest: Value? = nil, bufferSize: Int, replaysLatest: Bool) {
    state = Mutex(State(latest: latest))
    self.bufferSize = bufferSize
    self.replaysLatest = replaysLatest
  }

  var latest: Value? { state.withLock { $0.latest } }

  func publish(_ value: Value) {
    let listeners = state.withLock { state in
      state.latest = value
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.yield(value) }
  }

  func listen() -> AsyncStream<Value> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Value.self, bufferingPolicy: .bufferingNewest(bufferSize))
    let (number, latest) = state.withLock { state in
      state.nextListener += 1
      state.listeners[state.nextListener] = continuation
      return (state.nextListener, state.latest)
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.listeners.removeValue(forKey: number) }
    }
    if replaysLatest, let latest { continuation.yield(latest) }
    return stream
  }
}
