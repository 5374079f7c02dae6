package import EventLoop
package import Postgres
package import SQLGeneration
package import ServiceRuntime
internal import Synchronization

/// Brings rules into force: capture first, then the new definitions built beside the old, then one tick
/// that switches from the old set to the new.
///
/// The sequencer does the building. If no gateway runs, the deployer leads for as long as it takes.
package struct Deployer: Sendable {
  private let configuration: PostgresConfiguration
  private let loop: EventLoop
  private let options: SequencerOptions
  private let observer: any Observer
  private let patience: Duration

  /// - Parameter patience: how long no tick may succeed before `deploy` gives up waiting.
  package init(
    configuration: PostgresConfiguration, loop: EventLoop,
    options: SequencerOptions = SequencerOptions(), observer: any Observer = NoObserver(),
    patience: Duration = .seconds(15)
  ) {
    var configuration = configuration
    configuration.settings.merge(CompiledRules.sessionSettings) { _, ours in ours }
    configuration.settings["lock_timeout"] = "5s"
    configuration.settings["statement_timeout"] = "0"
    self.configuration = configuration
    self.loop = loop
    self.options = options
    self.observer = observer
    self.patience = patience
  }

  private func withConnection<R>(
    _ body: (PostgresConnection) async throws -> R
  ) async throws -> R {
    let connection = try await PostgresConnection.connect(configuration, on: loop)
    do {
      let result = try await body(connection)
      await connection.close()
      return result
    } catch {
      await connection.close()
      throw error
    }
  }

  // MARK: Asking

  /// What `deploy` would do. Changes nothing.
  package func plan(_ rules: CompiledRules) async throws -> DeploymentPlan {
    try await withConnection { connection in
      try await DeploymentSurvey(connection: connection, rules: rules).plan()
    }
  }

  // MARK: Doing

  /// Deploys, and reports until the rules are in force. `source` is the text of the rules file.
  ///
  /// When it throws after the rules are registered, the building goes on as soon as a gateway can, or
  /// with the next `deploy`.
  package func deploy(
    _ rules: CompiledRules, source: String,
    progress: @Sendable (DeploymentProgress) -> Void = { _ in }
  ) async throws {
    let expected = try await plan(rules).definitions.reduce(0) { $0 + $1.rowsToRead }
    let generation = try await register(rules, source: source, progress: progress)
    let watch = FailureWatch(observer)
    let sequencer = Sequencer(
      configuration: configuration, loop: loop, options: options, observer: watch)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await sequencer.run() }
      do {
        try await wait(
          for: generation, expected: expected, watching: watch, progress: progress)
      } catch {
        group.cancelAll()
        throw error
      }
      group.cancelAll()
      try? await group.waitForAll()
    }
  }

  /// Makes the rules known to whoever leads, without waiting for them to be in force.
  package func register(
    _ rules: CompiledRules, source: String,
    progress: @Sendable (DeploymentProgress) -> Void = { _ in }
  ) async throws -> Int64 {
    progress(DeploymentProgress(stage: .capturing, generation: nil, rowsRead: 0, rowsToRead: 0))
    return try await withConnection { connection in
      try await DeploymentSurvey(connection: connection, rules: rules).check()
      let registration = Registration(connection: connection, rules: rules)
      for table in rules.tables {
        for attempt in 1...5 {
          do {
            try await connection.transaction { try await registration.capture(table) }
            break
          } catch let error as PostgresError where error.code == "55P03" && attempt < 5 {
            continue
          } catch let error as PostgresError where error.code == "42501" {
            throw StorageError(
              .notPermitted, "the role may not make triggers on \(table.schema).\(table.name)",
              hint: "Deploy as the owner of the table, which also has to own the schema `sluice`.",
              underlying: error)
          }
        }
      }
      return try await connection.transaction { try await registration.generation(source: source) }
    }
  }

  private func wait(
    for generation: Int64, expected: Int64, watching watch: FailureWatch,
    progress: @Sendable (DeploymentProgress) -> Void
  ) async throws {
    try await withConnection { connection in
      while true {
        if let error = watch.error(lastingFor: patience) { throw error }
        let result = try await connection.query(
          """
          SELECT g.state, coalesce(sum(m.rows_read), 0)::bigint,
            (SELECT string_agg(s.problem, ' ') FROM sluice.suspensions s
              JOIN sluice.definitions d ON d.id = s.definition AND d.state = 'building'),
            (SELECT string_agg(DISTINCT s.remedy, ' ') FROM sluice.suspensions s
              JOIN sluice.definitions d ON d.id = s.definition AND d.state = 'building')
          FROM sluice.generations g LEFT JOIN (
            SELECT q.rows_read FROM (SELECT definition, rows_read FROM sluice.queries
              UNION ALL SELECT definition, rows_read FROM sluice.lookups) q
            JOIN sluice.definitions d ON d.id = q.definition AND d.state = 'building'
          ) m ON g.state = 'building'
          WHERE g.id = $1::bigint GROUP BY g.state
          """, [.integer(generation)])
        let read = result.firstInt(1) ?? 0
        let toRead = max(expected, read)
        switch result.firstString(0) {
        case "active":
          progress(
            DeploymentProgress(
              stage: .active, generation: generation, rowsRead: read, rowsToRead: toRead))
          return
        case "building":
          if let problem = result.firstString(2) {
            throw StorageError(.suspended, problem, hint: result.firstString(3))
          }
          progress(
            DeploymentProgress(
              stage: .building, generation: generation, rowsRead: read, rowsToRead: toRead))
        default:
          throw StorageError(
            .superseded, "another deployment took this one's place before it was in force")
        }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }
}

/// Remembers since when the deployer's own sequencer has been failing, and why.
private final class FailureWatch: Observer {
  private let observer: any Observer
  private let failure = Mutex<(since: ContinuousClock.Instant, error: any Error)?>(nil)

  init(_ observer: any Observer) { self.observer = observer }

  func observe(_ observation: Observation) {
    observer.observe(observation)
    switch observation.event {
    case "tick.committed": failure.withLock { $0 = nil }
    case "sequencer.failed":
      guard let error = observation.error else { return }
      failure.withLock { $0 = ($0?.since ?? .now, error) }
    default: break
    }
  }

  func error(lastingFor patience: Duration) -> (any Error)? {
    failure.withLock { failure in
      guard let failure, ContinuousClock.now - failure.since >= patience else { return nil }
      return failure.error
    }
  }
}
