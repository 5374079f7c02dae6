internal import Postgres
internal import ServiceRuntime

/// One term of leadership: what to do next, and how long to rest after it.
struct LeaderSession {
  private let connection: PostgresConnection
  private let options: SequencerOptions
  private let observer: any Observer
  private var runner: TickRunner
  private var housekeeping: Housekeeping
  private var isIdle = false
  private var filesSeenAt = ContinuousClock.now
  private var keptHouseAt = ContinuousClock.now
  private var isHouseKept = true
  /// Whether a tick succeeded, if only in finding nothing to do.
  private(set) var hasTicked = false
  private var retries = 0
  /// Sources whose capture triggers could not be made yet.
  private var uncaptured: Set<Int64> = []
  private var capturedAt = ContinuousClock.now
  private var suspensions: Suspensions
  private var reviewedAt = ContinuousClock.now

  init(
    _ connection: PostgresConnection, options: SequencerOptions, observer: any Observer,
    metrics: Metrics
  ) async throws {
    self.connection = connection
    self.options = options
    self.observer = observer
    runner = TickRunner(
      connection: connection, backfillLimit: options.backfillLimit,
      head: try await Self.head(connection), rules: try await StoredRules.load(connection))
    housekeeping = Housekeeping(options: options)
    suspensions = try await Suspensions(connection, observer: observer, metrics: metrics)
    for source in runner.rules.sources where try await ensureCapture(source.id) {
      runner.wanted.insert(source.id)
    }
    try await review()
  }

  private static func head(_ connection: PostgresConnection) async throws -> TickHead {
    do {
      guard let head = TickHead(try await connection.query(TickHead.select)) else {
        throw StorageError(
          .notInstalled, "the database has no first tick", hint: "Run `sluice install`.")
      }
      return head
    } catch let error as PostgresError where error.code == "42P01" || error.code == "3F000" {
      throw StorageError(
        .notInstalled, "the database has no schema of Sluice's", hint: "Run `sluice install`.",
        underlying: error)
    }
  }

  /// Polls, ticks or keeps house; answers how long to rest.
  mutating func step() async throws -> Duration {
    let now = ContinuousClock.now
    if now - reviewedAt >= options.filesPeriod { try await review() }
    if isIdle, runner.resuming.isEmpty {
      let looksAtFiles = now - filesSeenAt >= options.filesPeriod
      if looksAtFiles { filesSeenAt = now }
      if try await !runner.poll(files: looksAtFiles) {
        try await keepHouse(now)
        return options.idlePeriod
      }
    }
    if !uncaptured.isEmpty, now - capturedAt >= options.filesPeriod {
      capturedAt = now
      for source in uncaptured where try await ensureCapture(source) {
        runner.wanted.insert(source)
      }
    }
    let outcome: TickRunner.Outcome
    do {
      outcome = try await runner.tick()
      retries = 0
    } catch let error as PostgresError where error.isRetryable && retries < 20 {
      retries += 1
      return .milliseconds(5 * retries)
    } catch let failure as EvaluationFailure where failure.error.isRetryable && retries < 20 {
      retries += 1
      return .milliseconds(5 * retries)
    } catch let failure as EvaluationFailure
      where failure.error.blamesStatement || failure.error.isLockTimeout
    {
      if failure.error.code == "42501", try await !mayWriteStorage() { throw failure }
      runner.resuming.remove(failure.part.definition)
      try await review()
      // Unless the catalog tells why.
      if runner.suspended[failure.part.definition] == nil
        || runner.resuming.contains(failure.part.definition)
      {
        try await suspensions.suspend(
          after: failure, runner.rules, head: runner.head, connection)
        applySuspensions(resuming: runner.resuming.subtracting([failure.part.definition]))
      }
      return .zero
    }
    return try await follow(outcome, now)
  }

  private mutating func follow(
    _ outcome: TickRunner.Outcome, _ now: ContinuousClock.Instant
  ) async throws -> Duration {
    switch outcome {
    case .idle:
      isIdle = true
      hasTicked = true
      try await keepHouse(now)
      return options.idlePeriod
    case .rulesChanged:
      isIdle = false
      runner.rules = try await StoredRules.load(connection)
      try await suspensions.load(connection)
      try await review()
      return .zero
    case .filesChanged(let sources):
      isIdle = false
      for source in sources {
        _ = try await ensureCapture(source)
        runner.wanted.insert(source)
      }
      return .zero
    case .committed(let report):
      isIdle = false
      hasTicked = true
      report.observe(observer)
      suspensions.remove(report.resumed, runner.rules)
      if report.hasActivated {
        runner.rules = try await StoredRules.load(connection)
        try await suspensions.load(connection)
        try await review()
      }
      try await keepHouse(now)
      return report.isBackfilling || report.hasActivated ? .zero : options.busyPeriod
    }
  }

  /// Whether the role has its rights on Sluice's own tables: else no definition is to blame.
  private func mayWriteStorage() async throws -> Bool {
    let result = try await connection.query(
      """
      SELECT bool_and(has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
        AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'sluice' AND c.relkind IN ('r', 'p')
      """)
    return result.firstBool(0) == true
  }

  /// Looks whether the sources have the columns that the rules read.
  private mutating func review() async throws {
    reviewedAt = ContinuousClock.now
    let resuming = try await suspensions.review(runner.rules, head: runner.head, connection)
    applySuspensions(resuming: resuming)
  }

  private mutating func applySuspensions(resuming: Set<Int64>) {
    runner.suspended = suspensions.sources
    runner.resuming = resuming
  }

  /// Sees to the triggers of a source. True when some were made: what happened before they were there
  /// was not captured, so the source has to be read again whole.
  private mutating func ensureCapture(_ source: Int64) async throws -> Bool {
    do {
      let missing = try await connection.query(
        "SELECT sluice.uncaptured($1::int)", [.integer(source)])
      guard (missing.firstInt(0) ?? 0) > 0 else {
        return uncaptured.remove(source) != nil
      }
      _ = try await connection.query("SELECT sluice.ensure_capture($1::int)", [.integer(source)])
      uncaptured.remove(source)
      observer.observe(.info("capture.installed", ["source": .int(Int(source))]))
      return true
    } catch let error as PostgresError where !error.isConnectionFailure {
      uncaptured.insert(source)
      observer.observe(.warning("capture.missing", ["source": .int(Int(source))], error: error))
      return false
    }
  }

  private mutating func keepHouse(_ now: ContinuousClock.Instant) async throws {
    guard !isHouseKept || now - keptHouseAt >= options.housekeepingPeriod else { return }
    keptHouseAt = now
    isHouseKept = try await housekeeping.run(connection, head: runner.head)
  }
}

extension TickReport {
  fileprivate func observe(_ observer: any Observer) {
    let milliseconds = duration / .milliseconds(1)
    observer.observe(
      .debug(
        "tick.committed",
        [
          "tick": .int(Int(tick.number)), "changes": .int(Int(changes)),
          "backfilled": .int(Int(rowsBackfilled)), "milliseconds": .double(milliseconds),
        ]))
    if hasActivated { observer.observe(.info("rules.activated", ["tick": .int(Int(tick.number))])) }
    if hasMoved {
      observer.observe(.warning("history.moved", ["tick": .int(Int(tick.number))]))
    }
  }
}
