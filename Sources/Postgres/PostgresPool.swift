package import EventLoop
internal import Synchronization

/// A bounded number of connections, lent to one user at a time.
///
/// ```swift
/// let pool = PostgresPool(configuration: configuration, loop: loop, size: 8)
/// let name = try await pool.withConnection { try await $0.query("SELECT current_user")[0, 0] }
/// ```
///
/// Connections are made when they are first needed. One that is lost, or returned with a transaction still
/// open, is closed and another made in its place. Callers wait in order of arrival, for `waitTimeout` at
/// most; then they get an error of the kind `.pool`.
package final class PostgresPool: Sendable {
  private typealias Machine = PoolStateMachine<PostgresConnection>

  private enum Grant: Sendable {
    case use(PostgresConnection)
    case open
    case refuse(PostgresError)
    case cancelled
  }

  private struct State {
    var machine: Machine
    var nextID = 0
    var continuations: [Int: CheckedContinuation<Grant, Never>] = [:]
  }

  package let configuration: PostgresConfiguration
  package let size: Int
  private let loop: EventLoop
  private let waitTimeout: Duration
  private let state: Mutex<State>

  package init(
    configuration: PostgresConfiguration, loop: EventLoop, size: Int,
    waitTimeout: Duration = .seconds(10)
  ) {
    precondition(size > 0, "a pool has at least one connection")
    self.configuration = configuration
    self.size = size
    self.loop = loop
    self.waitTimeout = waitTimeout
    state = Mutex(State(machine: Machine(size: size)))
  }

  /// Lends a connection to `body`, which must not keep it.
  package func withConnection<R>(
    _ body: (PostgresConnection) async throws -> R
  ) async throws -> R {
    let connection = try await lease()
    do {
      let result = try await body(connection)
      await giveBack(connection)
      return result
    } catch {
      await giveBack(connection)
      throw error
    }
  }

  /// Refuses callers from now on, and closes every connection once it is free.
  package func close() async {
    let (connections, continuations) = state.withLock { state in
      let (connections, callers) = state.machine.close()
      return (connections, callers.compactMap { state.continuations.removeValue(forKey: $0) })
    }
    for continuation in continuations { continuation.resume(returning: .refuse(Self.closed)) }
    for connection in connections { await connection.close() }
  }

  private func lease() async throws -> PostgresConnection {
    switch await permit() {
    case .use(let connection) where !connection.closed:
      return connection
    case .use, .open:
      do {
        return try await PostgresConnection.connect(configuration, on: loop)
      } catch {
        await returnPermit(nil)
        throw error
      }
    case .refuse(let error):
      throw error
    case .cancelled:
      throw CancellationError()
    }
  }

  private func permit() async -> Grant {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    return await withTaskCancellationHandler {
      let deadline = Mutex<LoopEvent?>(nil)
      let grant = await withCheckedContinuation { continuation in
        let grant: Grant? = state.withLock { state in
          // Cancelling sets this before it calls the handler below, which needs the lock as well.
          if Task.isCancelled { return .cancelled }
          switch state.machine.arrive(id) {
          case .use(let connection): return .use(connection)
          case .open: return .open
          case .refuse: return .refuse(Self.closed)
          case .wait:
            state.continuations[id] = continuation
            return nil
          }
        }
        if let grant {
          continuation.resume(returning: grant)
        } else {
          let timer = loop.after(waitTimeout) { self.leave(id, with: .refuse(Self.busy)) }
          deadline.withLock { $0 = timer }
        }
      }
      deadline.withLock { $0 }?.cancel()
      return grant
    } onCancel: {
      leave(id, with: .cancelled)
    }
  }

  /// Ends the wait of a caller, if it waits.
  private func leave(_ id: Int, with grant: Grant) {
    let continuation = state.withLock { state in
      state.machine.leave(id) ? state.continuations.removeValue(forKey: id) : nil
    }
    continuation?.resume(returning: grant)
  }

  private func giveBack(_ connection: PostgresConnection) async {
    if await connection.isInTransaction { await connection.close() }
    await returnPermit(connection.closed ? nil : connection)
  }

  private func returnPermit(_ connection: PostgresConnection?) async {
    let (outcome, continuation) = state.withLock { state in
      let outcome = state.machine.giveBack(connection)
      guard case .hand(_, let id) = outcome else {
        return (outcome, nil as CheckedContinuation<Grant, Never>?)
      }
      return (outcome, state.continuations.removeValue(forKey: id))
    }
    switch outcome {
    case .hand(let connection, _):
      continuation?.resume(returning: connection.map { .use($0) } ?? .open)
    case .close(let connection): await connection.close()
    case .keep: break
    }
  }

  private static let closed = PostgresError(
    kind: .pool, code: "SLUICE_POOL_CLOSED", message: "the pool is closed")
  private static let busy = PostgresError(
    kind: .pool, code: "SLUICE_POOL_TIMEOUT", message: "no connection became free in time")
}
