internal import Synchronization

/// The request to end gracefully: given once, seen by everyone who waits or asks.
///
/// A `ServiceGroup` gives each service one, as `StopSignal.current`:
///
/// ```swift
/// func run() async throws {
///   while !StopSignal.isRequested { try await work() }
/// }
/// ```
package final class StopSignal: Sendable {
  private struct State {
    var isRequested = false
    var nextKey = 0
    var handlers: [Int: @Sendable () -> Void] = [:]
  }

  /// The signal of the service that the task belongs to.
  @TaskLocal package static var current: StopSignal?

  /// Whether the service that the task belongs to was asked to stop, or the task is cancelled.
  package static var isRequested: Bool {
    Task.isCancelled || current?.isRequested == true
  }

  private let state = Mutex(State())

  package init() {}

  package var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Asks. Handlers run on the caller's thread, once.
  package func request() {
    let handlers = state.withLock { state in
      state.isRequested = true
      defer { state.handlers = [:] }
      return state.handlers
    }
    for key in handlers.keys.sorted() { handlers[key]?() }
  }

  /// Calls `handler` when asked: at once if that was before. Returns a key for `removeHandler`.
  @discardableResult
  package func onRequest(_ handler: @escaping @Sendable () -> Void) -> Int {
    let key: Int? = state.withLock { state in
      guard !state.isRequested else { return nil }
      state.nextKey += 1
      state.handlers[state.nextKey] = handler
      return state.nextKey
    }
    if key == nil { handler() }
    return key ?? 0
  }

  package func removeHandler(_ key: Int) {
    state.withLock { $0.handlers[key] = nil }
  }

  /// Returns when asked, or when the task is cancelled.
  package func wait() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    let key = onRequest { continuation.finish() }
    defer { removeHandler(key) }
    for await _ in stream {}
  }

  /// Returns when the current service is asked to stop, or the task is cancelled.
  package static func wait() async {
    await (current ?? StopSignal()).wait()
  }

  /// Runs `body`, cancelled when the current service is asked to stop.
  package static func cancelling<R: Sendable>(
    _ body: @escaping @Sendable () async throws -> R
  ) async throws -> R {
    guard let current else { return try await body() }
    return try await withThrowingTaskGroup(of: R?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        await current.wait()
        return nil
      }
      while let result = try await group.next() {
        group.cancelAll()
        if let result { return result }
      }
      throw CancellationError()
    }
  }
}
