internal import CLibevent
internal import Synchronization

/// One thread and one libevent base: an executor for actors and tasks, with timers and descriptor
/// readiness on the same thread.
///
/// An actor pins itself to a loop, and then reads and writes its descriptors without a hop:
///
/// ```swift
/// actor Connection {
///   let loop: EventLoop
///   nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
/// }
/// ```
///
/// Handlers of timers and watches run on the loop's thread, so that inside them
/// `assumeIsolated` succeeds for an actor pinned to it. The thread ends when the last reference to the
/// loop is dropped; queued work, an armed timer and a watch each hold one.
package final class EventLoop: SerialExecutor, TaskExecutor {
  /// The name of the thread, of which the system shows fifteen characters.
  package let name: String

  let core: LoopCore

  /// Starts the thread.
  package init(name: String) {
    self.name = name
    core = LoopCore()
    core.startThread(name: name)
  }

  deinit {
    core.requestExit()
  }

  /// The `event_base`, for C code that brings its own events (evhttp). It is to be used on the loop's
  /// thread only, and lives as long as the loop.
  package var base: OpaquePointer { core.base }

  /// Whether the caller runs on the loop's thread.
  package var isOnLoop: Bool { core.isOnThread }

  /// Runs `body` on the loop's thread, after the work already queued. From any thread.
  package func submit(_ body: @escaping @Sendable () -> Void) {
    core.enqueue(.body(body, self))
  }

  /// Runs `body` on the loop's thread: at once when already there, queued otherwise.
  package func onLoop(_ body: @escaping @Sendable () -> Void) {
    if isOnLoop { body() } else { submit(body) }
  }

  /// Calls `handler` once, on the loop's thread, after `delay`. From any thread.
  @discardableResult
  package func after(
    _ delay: Duration, _ handler: @escaping @Sendable () -> Void
  ) -> LoopEvent {
    let event = LoopEvent(loop: self, kind: .timer(delay)) { _ in handler() }
    onLoop { event.armOnLoop() }
    return event
  }

  /// Calls `handler`, on the loop's thread, when `descriptor` can be read or written.
  ///
  /// Readiness is level-triggered: with `repeats`, the handler is called again as long as the condition
  /// holds. Without, it is called once, until `LoopEvent.arm()`. Cancel the watch, on the loop, before
  /// the descriptor is closed.
  package func watch(
    _ descriptor: Int32, for readiness: LoopReadiness, repeats: Bool = true,
    _ handler: @escaping @Sendable (LoopReadiness) -> Void
  ) -> LoopEvent {
    let event = LoopEvent(
      loop: self, kind: .descriptor(descriptor, readiness, repeats: repeats), handler: handler)
    onLoop { event.armOnLoop() }
    return event
  }

  /// Cancels every timer and watch. The loop goes on to run jobs, so that actors pinned to it can
  /// finish, until the last reference is dropped.
  package func stop() {
    onLoop { self.core.cancelAllEvents() }
  }

  // MARK: Executor

  package func enqueue(_ job: consuming ExecutorJob) {
    core.enqueue(.job(UnownedJob(job), self))
  }

  package func checkIsolated() {
    precondition(isOnLoop, "not on the thread of the event loop \(name)")
  }

  package func isIsolatingCurrentContext() -> Bool? {
    isOnLoop
  }
}
