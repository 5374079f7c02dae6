package import EventLoop
package import Postgres
internal import SQLGeneration
package import ServiceRuntime

/// Makes the ticks: one process leads, the others wait to take over.
///
/// The leader holds an advisory lock on the connection that makes the ticks, so that it stops leading
/// when it dies or is cut off. Should a rival start all the same, the tick's row fences one of them off.
package actor Sequencer: Service {
  package nonisolated let name = "sequencer"

  /// Any number will do, as long as every gateway of the database takes the same.
  static let lockKey: Int64 = 0x736C_7569_6365

  private let configuration: PostgresConfiguration
  private let loop: EventLoop
  private let options: SequencerOptions
  private let observer: any Observer
  private let metrics: Metrics
  private let leading: Gauge
  /// The wait after the next failure.
  private var pause = Sequencer.shortestPause

  private static let shortestPause = Duration.milliseconds(200)
  private static let longestPause = Duration.seconds(5)

  package init(
    configuration: PostgresConfiguration, loop: EventLoop,
    options: SequencerOptions = SequencerOptions(), observer: any Observer = NoObserver(),
    metrics: Metrics = Metrics()
  ) {
    var configuration = configuration
    configuration.settings.merge(Self.settings) { _, ours in ours }
    self.configuration = configuration
    self.loop = loop
    self.options = options
    self.observer = observer
    self.metrics = metrics
    leading = metrics.gauge("sluice_sequencer_leading", "Whether this process makes the ticks.")
  }

  /// The session of the leader. Its statements lead from keys to rows by index; a plan made while
  /// tables were empty stays right when they are large.
  static let settings: [String: String] = CompiledRules.sessionSettings.merging([
    "enable_seqscan": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "force_generic_plan",
    "work_mem": "64MB",
    "row_security": "off",
    // What a role or a database is given for interactive use would stop large ticks for ever.
    "statement_timeout": "0",
    // So long a locked table can hold up the definitions that do not read it.
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "60s",
  ]) { _, ours in ours }

  /// Leads whenever it can, until it is asked to stop.
  package func run() async throws {
    while !StopSignal.isRequested {
      do {
        try await attempt()
        await sleep(options.leadershipPeriod)
      } catch is CancellationError {
        return
      } catch {
        if StopSignal.isRequested { return }
        report(StorageError.explaining(error))
        await sleep(pause)
        pause = min(pause * 2, Self.longestPause)
      }
    }
  }

  private func report(_ error: any Error) {
    let code =
      switch error {
      case let error as StorageError: error.code.name
      case let error as PostgresError: error.code
      default: "other"
      }
    metrics.counter(
      "sluice_sequencer_failures_total", "Terms of leadership that could not begin or failed.",
      ["code": code]
    ).add()
    observer.observe(.error("sequencer.failed", ["code": .string(code)], error: error))
  }

  /// Leads if nobody else does; returns when asked to stop, or when another leads.
  private func attempt() async throws {
    let connection = try await PostgresConnection.connect(configuration, on: loop)
    do {
      let result = try await connection.query(
        "SELECT pg_try_advisory_lock($1::bigint)", [.integer(Self.lockKey)])
      guard result.firstBool(0) == true else {
        await connection.close()
        pause = Self.shortestPause
        return
      }
      observer.observe(.info("sequencer.leading"))
      try await lead(connection)
      await connection.close()
    } catch {
      await connection.close()
      throw error
    }
  }

  private func lead(_ connection: PostgresConnection) async throws {
    leading.set(1)
    defer { leading.set(0) }
    var session = try await LeaderSession(
      connection, options: options, observer: observer, metrics: metrics)
    while !StopSignal.isRequested {
      try Task.checkCancellation()
      let rest = try await session.step()
      if session.hasTicked { pause = Self.shortestPause }
      await sleep(rest)
    }
  }

  private func sleep(_ duration: Duration) async {
    guard duration > .zero, !StopSignal.isRequested else { return }
    guard let signal = StopSignal.current else {
      try? await Task.sleep(for: duration)
      return
    }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await Task.sleep(for: duration) }
      group.addTask { await signal.wait() }
      await group.next()
      group.cancelAll()
    }
  }
}
