internal import Synchronization

/// Counts streams, and refuses those that are too many.
///
/// Two bounds: how many are open, and how many are starting, that is, have not completed their first
/// checkpoint. The second keeps a storm of returning clients from holding up those who are connected.
package final class AdmissionGate: Sendable {
  package enum Refusal: Sendable, Equatable {
    case tooManyStreams
    case tooManyStarting
    case stopping
  }

  private struct State {
    var open = 0
    var starting = 0
    var isStopping = false
  }

  private let limit: Int
  private let startingLimit: Int
  private let state = Mutex(State())

  package init(limit: Int, startingLimit: Int) {
    self.limit = limit
    self.startingLimit = startingLimit
  }

  package var openCount: Int { state.withLock { $0.open } }
  package var startingCount: Int { state.withLock { $0.starting } }

  /// Lets a stream in, or says why not.
  package func enter() -> Refusal? {
    state.withLock { state in
      if state.isStopping { return .stopping }
      if state.open >= limit { return .tooManyStreams }
      if state.starting >= startingLimit { return .tooManyStarting }
      state.open += 1
      state.starting += 1
      return nil
    }
  }

  /// A stream that was let in has completed its first checkpoint.
  package func started() {
    state.withLock { $0.starting -= 1 }
  }

  /// A stream has ended; `hadStarted` tells whether ``started()`` was called for it.
  package func leave(hadStarted: Bool) {
    state.withLock { state in
      state.open -= 1
      if !hadStarted { state.starting -= 1 }
    }
  }

  /// Lets nobody in any more.
  package func stop() {
    state.withLock { $0.isStopping = true }
  }
}
