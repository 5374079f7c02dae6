import SQLiteReplica
import SyncProtocol
import Testing

@testable import SluiceClient

@Suite("The client's decisions")
struct SyncStateMachineTests {
  private let failure = SyncFailure(kind: .network, code: "X", message: "x")
  private let applied = AppliedCheckpoint(
    tick: 2, stamp: "2026-11-30T02:05:11.123456Z", priority: nil, rowsChanged: 0, tables: [])

  private func machine(_ mode: SyncStateMachine.Mode = .continuous) -> SyncStateMachine {
    SyncStateMachine(mode: mode, backoff: Backoff(), lastCheckpoint: nil)
  }

  /// A machine whose stream is open.
  private func streaming(_ mode: SyncStateMachine.Mode = .continuous) -> SyncStateMachine {
    var machine = machine(mode)
    #expect(machine.start() == .fetchToken)
    #expect(machine.fetchedToken() == .openStream)
    #expect(machine.opened() == .read)
    return machine
  }

  @Test("waits double from one second to five minutes")
  func backoff() {
    var machine = machine()
    _ = machine.start()
    let waits = (0..<11).map { _ in machine.failed(failure, jitter: 1) }
    #expect(
      waits
        == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map {
          SyncStateMachine.Action.wait(.seconds($0))
        })
    #expect(Backoff().delay(failures: 3, jitter: 0) == .seconds(2))
    #expect(Backoff().delay(failures: .max, jitter: 1) == .seconds(300))
  }

  @Test("rows that arrive make failures good, but not the replica's own")
  func progress() {
    var machine = streaming()
    _ = machine.failed(failure, jitter: 1)
    _ = machine.failed(failure, jitter: 1)
    let progress = ReplicaEvent.progress(DownloadProgress(downloaded: 1, expected: 2))
    #expect(machine.received(progress, checkpoint: nil, jitter: 1) == .read)
    #expect(machine.failed(failure, jitter: 1) == .wait(.seconds(1)))
    let drifted = SyncFailure(kind: .replica, code: "D", message: "d")
    for seconds in [2, 4, 8] {
      _ = machine.received(progress, checkpoint: nil, jitter: 1)
      _ = machine.failed(drifted, jitter: 1)
      _ = machine.received(progress, checkpoint: nil, jitter: 1)
      #expect(machine.failed(drifted, jitter: 1) != .wait(.seconds(1)), "\(seconds)")
    }
  }

  @Test("token-expiry: an expired token is renewed once, at once; a bad one is not hammered")
  func expiry() {
    var machine = streaming()
    let expired = ErrorBody(code: "SLUICE_AUTH_EXPIRED", message: "m")
    #expect(machine.received(.failed(expired), checkpoint: nil, jitter: 1) == .fetchToken)
    #expect(machine.fetchedToken() == .openStream)
    let refusal = SyncFailure(expired)
    #expect(
      machine.refused(status: 401, refusal, retryAfter: nil, jitter: 1) == .wait(.seconds(1)))
    #expect(machine.waited() == .fetchToken)
  }

  @Test("a token that is about to expire is renewed while the stream goes on")
  func renewal() {
    var machine = streaming()
    #expect(
      machine.received(.keepalive(tokenExpiresIn: 31), checkpoint: nil, jitter: 1) == .read)
    let soon = ReplicaEvent.keepalive(tokenExpiresIn: 30)
    #expect(machine.received(soon, checkpoint: nil, jitter: 1) == .renewToken)
    #expect(machine.renewedToken(isNew: false) == .read)
    #expect(machine.received(soon, checkpoint: nil, jitter: 1) == .read)
    var other = streaming()
    _ = other.received(soon, checkpoint: nil, jitter: 1)
    #expect(other.renewedToken(isNew: true) == .openStream)
  }

  @Test("storm: Retry-After is kept to, and spread")
  func retryAfter() {
    for status in [503, 429] {
      var machine = machine()
      _ = machine.start()
      _ = machine.fetchedToken()
      #expect(
        machine.refused(status: status, failure, retryAfter: .seconds(7), jitter: 0)
          == .wait(.seconds(7) + .milliseconds(500)))
      #expect(machine.status.connection == .waiting(.seconds(7) + .milliseconds(500)))
      #expect(machine.waited() == .openStream)
    }
  }

  @Test("once ends with the first whole checkpoint, or after so many failures")
  func once() {
    var machine = streaming(.once(attempts: 2))
    let partial = AppliedCheckpoint(
      tick: 2, stamp: applied.stamp, priority: 1, rowsChanged: 0, tables: [])
    #expect(machine.received(.applied(partial), checkpoint: nil, jitter: 1) == .read)
    #expect(machine.received(.applied(applied), checkpoint: nil, jitter: 1) == .finish)
    var failing = streaming(.once(attempts: 2))
    #expect(failing.streamEnded(jitter: 1) == .wait(.seconds(1)))
    #expect(failing.streamEnded(jitter: 1) == .fail(.streamEnded))
  }
}
