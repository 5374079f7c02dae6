import SQLiteReplica
import SyncProtocol

/// Decides what a syncing client does next. It waits for nothing and asks no clock: time and chance come in, actions go out.
///
/// ```
/// start → fetchToken → openStream → read … read → (stream ends) → wait → fetchToken or openStream → …
/// ```
struct SyncStateMachine {
  enum Mode: Equatable {
    /// Until the first whole checkpoint; gives up after so many failures in a row.
    case once(attempts: Int)
    /// For as long as the task lives.
    case continuous
  }

  enum Action: Equatable {
    /// Ask the application for a token, then tell `fetchedToken` or `failed`.
    case fetchToken
    /// Send the request with the last token, then tell `responded` or `failed`.
    case openStream
    /// Read on in the open stream, then tell `received`, `streamEnded` or `failed`.
    case read
    /// Ask for a token while the stream is open, then tell `renewedToken`.
    case renewToken
    /// Wait, then tell `waited`.
    case wait(Duration)
    /// Everything asked for is done.
    case finish
    /// Give up.
    case fail(SyncFailure)
  }

  private enum State: Equatable {
    case idle
    case fetchingToken
    case opening
    case streaming
    case renewing
    case waiting(thenFetchToken: Bool)
    case done
  }

  private let mode: Mode
  private let backoff: Backoff
  private var state: State = .idle
  /// Failures since the gateway last sent something of use.
  private var failures = 0
  /// Failures of the replica itself since the last whole checkpoint: rows coming in do not make these good.
  private var replicaFailures = 0
  /// Whether the token in use has been accepted since it was fetched.
  private var tokenIsProven = false
  /// Whether the application had nothing newer when the token was about to expire.
  private var tokenIsLatest = false
  private(set) var status = SyncStatus()
  private var subscriptions = SubscriptionTracker()

  init(mode: Mode, backoff: Backoff, lastCheckpoint: CheckpointTime?) {
    self.mode = mode
    self.backoff = backoff
    status.lastCheckpoint = lastCheckpoint
  }

  // MARK: Events

  mutating func start() -> Action { fetchToken() }

  mutating func fetchedToken() -> Action {
    tokenIsProven = false
    tokenIsLatest = false
    return open()
  }

  mutating func waited() -> Action {
    guard case .waiting(let thenFetchToken) = state else { return open() }
    return thenFetchToken ? fetchToken() : open()
  }

  /// The request is being sent with these.
  mutating func opening(with subscriptions: [StreamSubscription]) {
    self.subscriptions.open(subscriptions)
    status.subscriptions = self.subscriptions.statuses
  }

  /// The application subscribes to something else than the stream was opened with.
  mutating func subscriptionsChanged() -> Action { open() }

  /// The gateway has answered 200.
  mutating func opened() -> Action {
    state = .streaming
    tokenIsProven = true
    status.connection = .connected
    status.failure = nil
    return .read
  }

  /// The gateway has refused.
  mutating func refused(
    status code: Int, _ failure: SyncFailure, retryAfter: Duration?, jitter: Double
  ) -> Action {
    if code == 401 {
      let wasProven = tokenIsProven
      tokenIsProven = false
      // A token that worked has expired: a new one may be had at once.
      if wasProven { return fetchToken() }
      return wait(failure, thenFetchToken: true, atLeast: nil, jitter)
    }
    let later = code == 503 || code == 429 ? retryAfter : nil
    return wait(failure, thenFetchToken: code == 403, atLeast: later, jitter)
  }

  /// A line has been taken in.
  mutating func received(
    _ event: ReplicaEvent, checkpoint: CheckpointTime?, jitter: Double
  ) -> Action {
    switch event {
    case .progress(let progress):
      status.download = progress
      failures = 0
    case .announced(let line, let progress):
      status.download = progress
      failures = 0
      subscriptions.announced(line)
      status.subscriptions = subscriptions.statuses
    case .applied(let applied):
      status.download = nil
      failures = 0
      subscriptions.applied(priority: applied.priority)
      status.subscriptions = subscriptions.statuses
      guard applied.priority == nil else { return .read }
      replicaFailures = 0
      status.lastCheckpoint = checkpoint
      if case .once = mode {
        state = .done
        status.connection = .idle
        return .finish
      }
    case .keepalive(let seconds):
      if seconds <= 30, !tokenIsLatest {
        state = .renewing
        return .renewToken
      }
    case .failed(let body):
      if body.code.hasPrefix("SLUICE_AUTH_"), tokenIsProven, tokenIsLatest == false {
        tokenIsProven = false
        return fetchToken()
      }
      return wait(
        SyncFailure(body), thenFetchToken: body.code.hasPrefix("SLUICE_AUTH_"), atLeast: nil, jitter
      )
    case .ignored: break
    }
    return .read
  }

  /// The application has given a token for the open stream's successor, or the same one again.
  mutating func renewedToken(isNew: Bool) -> Action {
    if isNew {
      tokenIsProven = false
      return open()
    }
    tokenIsLatest = true
    state = .streaming
    return .read
  }

  /// The stream ended without an error.
  mutating func streamEnded(jitter: Double) -> Action {
    wait(.streamEnded, thenFetchToken: false, atLeast: nil, jitter)
  }

  /// Something failed: the token's provider, the connection, the replica.
  mutating func failed(_ failure: SyncFailure, jitter: Double) -> Action {
    if failure.kind == .replica { replicaFailures += 1 }
    return wait(failure, thenFetchToken: failure.kind == .token, atLeast: nil, jitter)
  }

  mutating func stopped() {
    state = .done
    status.connection = .idle
    status.download = nil
  }

  // MARK: Steps

  private mutating func fetchToken() -> Action {
    state = .fetchingToken
    status.connection = .connecting
    return .fetchToken
  }

  private mutating func open() -> Action {
    state = .opening
    status.connection = .connecting
    return .openStream
  }

  private mutating func wait(
    _ failure: SyncFailure, thenFetchToken: Bool, atLeast minimum: Duration?, _ jitter: Double
  ) -> Action {
    failures += 1
    status.failure = failure
    let count = max(failures, replicaFailures)
    if case .once(let attempts) = mode, count >= attempts {
      state = .done
      status.connection = .idle
      return .fail(failure)
    }
    state = .waiting(thenFetchToken: thenFetchToken)
    var delay = backoff.delay(failures: count, jitter: jitter)
    // A gateway that asks for patience gets it, and not from all clients at the same moment.
    if let minimum { delay += minimum }
    status.connection = .waiting(delay)
    return .wait(delay)
  }
}
