internal import CLibevent
internal import Glibc
internal import Synchronization

/// What a descriptor is ready for.
package struct LoopReadiness: OptionSet, Sendable {
  package let rawValue: Int16
  package init(rawValue: Int16) { self.rawValue = rawValue }

  package static let read = LoopReadiness(rawValue: 2)
  package static let write = LoopReadiness(rawValue: 4)
}

/// A timer or a watch of an `EventLoop`. The loop keeps it until it has fired (a timer) or is cancelled.
///
/// `@unchecked`: `raw` and `isOver` are used on the loop's thread only.
package final class LoopEvent: @unchecked Sendable {
  enum Kind {
    case timer(Duration)
    case descriptor(Int32, LoopReadiness, repeats: Bool)
  }

  private let loop: EventLoop
  private let kind: Kind
  private let handler: @Sendable (LoopReadiness) -> Void
  private let isCancelled = Atomic<Bool>(false)
  private var raw: OpaquePointer?
  private var isOver = false

  init(loop: EventLoop, kind: Kind, handler: @escaping @Sendable (LoopReadiness) -> Void) {
    self.loop = loop
    self.kind = kind
    self.handler = handler
  }

  /// Ends the timer or the watch. On the loop it ends at once; from elsewhere soon, though no call of
  /// the handler begins any more. Cancelling twice is allowed.
  package func cancel() {
    isCancelled.store(true, ordering: .releasing)
    loop.onLoop { self.cancelOnLoop() }
  }

  /// Waits again: for a watch that does not repeat. A timer starts anew with its delay.
  package func arm() {
    loop.onLoop { self.armOnLoop() }
  }

  func armOnLoop() {
    guard !isCancelled.load(ordering: .acquiring), !isOver else { return }
    if raw == nil {
      let argument = Unmanaged.passUnretained(self).toOpaque()
      let callback: event_callback_fn = { _, what, argument in
        guard let argument else { return }
        Unmanaged<LoopEvent>.fromOpaque(argument).takeUnretainedValue().fire(what)
      }
      switch kind {
      case .timer:
        raw = event_new(loop.base, -1, 0, callback, argument)
      case .descriptor(let descriptor, let readiness, let repeats):
        let flags = readiness.rawValue | (repeats ? Int16(EV_PERSIST) : 0)
        raw = event_new(loop.base, descriptor, flags, callback, argument)
      }
      loop.core.register(self)
    }
    if case .timer(let delay) = kind {
      var time = timeval(delay)
      event_add(raw, &time)
    } else {
      event_add(raw, nil)
    }
  }

  func cancelOnLoop() {
    isOver = true
    guard let raw else { return }
    self.raw = nil
    event_free(raw)
    loop.core.unregister(self)
  }

  private func fire(_ what: Int16) {
    guard !isCancelled.load(ordering: .acquiring) else { return }
    if case .timer = kind {
      // The registry's reference goes; the caller's may be the last one left, or none.
      if let raw { event_free(raw) }
      raw = nil
      withExtendedLifetime(self) {
        loop.core.unregister(self)
        handler([])
      }
    } else {
      handler(LoopReadiness(rawValue: what).intersection([.read, .write]))
    }
  }
}

extension timeval {
  fileprivate init(_ duration: Duration) {
    let (seconds, attoseconds) = max(duration, .zero).components
    self.init(
      tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
  }
}
