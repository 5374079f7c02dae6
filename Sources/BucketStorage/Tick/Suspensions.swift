internal import Postgres
internal import SQLGeneration
internal import ServiceRuntime

/// The definitions that stand still because a source is not as the rules read it: which, why, and when
/// to try them again.
///
/// A suspension is a row, so that the next leader knows that changes have passed the definition by.
struct Suspensions {
  private struct Row {
    /// Found by looking at the catalog, where its end is seen as well.
    let isCatalog: Bool
    let problem: String
  }

  private let observer: any Observer
  private let gauge: Gauge
  private var rows: [TickPart: Row] = [:]
  /// When a definition that failed for a reason that the catalog does not tell is tried again.
  private var attempts: [Int64: Attempt] = [:]

  private struct Attempt {
    var after: ContinuousClock.Instant
    var pause: Duration
    /// Whether a lock kept the definition from its source.
    var isLock: Bool
  }

  init(_ connection: PostgresConnection, observer: any Observer, metrics: Metrics) async throws {
    self.observer = observer
    gauge = metrics.gauge(
      "sluice_definitions_suspended", "Definitions that stand still; only the leader knows.")
    try await load(connection)
  }

  /// The sources over which definitions cannot be evaluated.
  var sources: [Int64: Set<Int64>] {
    rows.keys.reduce(into: [:]) { $0[$1.definition, default: []].insert($1.source) }
  }

  /// Reads what earlier leaders left.
  mutating func load(_ connection: PostgresConnection) async throws {
    let result = try await connection.query(
      """
      SELECT s.definition, s.source, s.is_catalog, s.problem FROM sluice.suspensions s
      JOIN sluice.definitions d ON d.id = s.definition WHERE d.state <> 'retired'
      """)
    rows = [:]
    for row in 0..<result.rowCount {
      guard let definition = result.int(row, 0), let source = result.int(row, 1) else { continue }
      rows[TickPart(definition: definition, source: source)] = Row(
        isCatalog: result.bool(row, 2) ?? true, problem: result.string(row, 3) ?? "")
    }
    count()
  }

  /// Compares the columns that the rules read with the catalog. Suspends what does not fit, and answers
  /// the definitions that can be evaluated again.
  mutating func review(
    _ rules: StoredRules, head: TickHead, _ connection: PostgresConnection
  ) async throws -> Set<Int64> {
    let result = try await connection.query(
      "SELECT a.*, current_user FROM sluice.columns_amiss($1::int[]) a",
      [.integerArray(rules.sources.map(\.id))])
    var amiss: Set<TickPart> = []
    for row in 0..<result.rowCount {
      guard let definition = result.int(row, 0), let source = result.int(row, 1) else { continue }
      let part = TickPart(definition: definition, source: source)
      // What another column was read as before is read again, and then all is well.
      let isPassing = result.string(row, 2) == "moved"
      guard isPassing ? rows[part] == nil : amiss.insert(part).inserted,
        let table = rules.name(of: source)
      else { continue }
      let text = Self.sentences(result, row, table)
      if rows[part]?.problem != text.problem {
        try await suspend(
          part, Row(isCatalog: true, problem: text.problem), text.remedy, rules, head, connection)
      }
    }
    let now = ContinuousClock.now
    let locked = try await lockedSources(connection)
    return Set(
      sources.keys.filter { definition in
        rows.allSatisfy { part, row in
          if part.definition != definition { return true }
          if row.isCatalog { return !amiss.contains(part) }
          return !locked.contains(part.source) && now >= attempts[definition]?.after ?? now
        }
      })
  }

  /// Of the sources that were locked, those that still are: to try them would hold up every other.
  private func lockedSources(_ connection: PostgresConnection) async throws -> Set<Int64> {
    let waiting = rows.keys.filter { attempts[$0.definition]?.isLock == true }.map(\.source)
    guard !waiting.isEmpty else { return [] }
    let result = try await connection.query(
      """
      SELECT s.id FROM sluice.sources s
      JOIN pg_namespace n ON n.nspname = s.schema::name
      JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = s.name::name
      JOIN pg_locks l ON l.relation = c.oid AND l.database = sluice.database_oid()
      WHERE s.id = ANY ($1::int[]) AND l.granted AND l.mode = 'AccessExclusiveLock'
      """, [.integerArray(waiting)])
    return Set((0..<result.rowCount).compactMap { result.int($0, 0) })
  }

  /// Suspends a definition whose statement failed, for a reason that the catalog may not tell.
  mutating func suspend(
    after failure: EvaluationFailure, _ rules: StoredRules, head: TickHead,
    _ connection: PostgresConnection
  ) async throws {
    let part = failure.part
    let isLock = failure.error.isLockTimeout
    let pause = min(
      (attempts[part.definition]?.pause ?? .milliseconds(500)) * 2, .seconds(isLock ? 10 : 60))
    attempts[part.definition] = Attempt(
      after: ContinuousClock.now + pause, pause: pause, isLock: isLock)
    let text = Self.sentences(failure.error, rules.name(of: part.source) ?? "a table")
    try await suspend(
      part, Row(isCatalog: false, problem: text.problem), text.remedy, rules, head, connection)
  }

  /// The tick that brings these definitions up to date is committed.
  mutating func remove(_ definitions: Set<Int64>, _ rules: StoredRules) {
    rows = rows.filter { !definitions.contains($0.key.definition) }
    count()
    for definition in definitions.sorted() {
      observer.observe(
        .info("definition.resumed", ["definition": .string(rules.name(ofDefinition: definition))]))
    }
  }

  private mutating func suspend(
    _ part: TickPart, _ row: Row, _ remedy: String, _ rules: StoredRules, _ head: TickHead,
    _ connection: PostgresConnection
  ) async throws {
    try await connection.transaction {
      // The fence of the ticks: a gateway that no longer leads must not suspend anything.
      let last = try await connection.query(TickHead.select + " FOR UPDATE")
      guard TickHead(last)?.tick == head.tick else {
        throw StorageError(.notLeader, "another gateway made the last tick")
      }
      _ = try await connection.query(
        """
        INSERT INTO sluice.suspensions AS s (definition, source, is_catalog, problem, remedy)
        VALUES ($1::bigint, $2::int, $3::boolean, $4::text, $5::text)
        ON CONFLICT (definition, source) DO UPDATE SET is_catalog = excluded.is_catalog,
          problem = excluded.problem, remedy = excluded.remedy
        """,
        [
          .integer(part.definition), .integer(part.source), .boolean(row.isCatalog),
          .text(row.problem), .text(remedy),
        ])
    }
    rows[part] = row
    count()
    observer.observe(
      .error(
        "definition.suspended",
        [
          "definition": .string(rules.name(ofDefinition: part.definition)),
          "problem": .string(row.problem), "remedy": .string(remedy),
        ]))
  }

  private func count() {
    gauge.set(Set(rows.keys.map(\.definition)).count)
  }

  private static func sentences(
    _ error: PostgresError, _ table: String
  ) -> (problem: String, remedy: String) {
    if error.exceedsRowSize {
      return (
        "A row of \(table) is larger than the \(RowSize.limit >> 20) MiB that a replica takes "
          + "(\(StorageError.Code.rowTooLarge.name)).",
        "Shorten the row, or leave its large columns out of the rules."
      )
    }
    if error.isLockTimeout {
      return (
        "\(table) is locked by another session (\(StorageError.Code.lockTimeout.name)).",
        "It goes on by itself when the lock is released; pg_locks shows by whom it is held."
      )
    }
    // Only of this class do messages name things and no values.
    let reason = error.code.hasPrefix("42") ? ": \(error.message)" : ""
    return (
      "\(table) cannot be read as the rules say (PostgreSQL \(error.code)\(reason)).",
      error.code == "42501"
        ? "Give the gateway's role the right."
        : "Change the table or its rows back, or deploy rules that fit them."
    )
  }

  private static func sentences(
    _ result: PostgresResult, _ row: Int, _ table: String
  ) -> (problem: String, remedy: String) {
    let column = result.string(row, 3) ?? ""
    switch result.string(row, 2) {
    case "table":
      return (
        "There is no table \(table) any more.", "Bring it back, or deploy rules without it."
      )
    case "column":
      guard let found = result.string(row, 5) else {
        return (
          "\(table) has no column \(column) any more.", "Bring it back, or deploy rules without it."
        )
      }
      return (
        "\(table) has no column \(column) any more: it is called \(found) now.",
        "Rename it back, or deploy rules with the new name."
      )
    case "key":
      return (
        "\(table) has no primary key or unique index over \(column) any more.",
        "Bring it back, or deploy the rules again for the key that the table has now."
      )
    case "moved":
      return (
        "Column \(column) of \(table) is another one than before.", "The table is read again."
      )
    case "type":
      let (was, found) = (result.string(row, 4) ?? "", result.string(row, 5) ?? "")
      return (
        "Column \(column) of \(table) has type \(found), and the rules were made for \(was).",
        "Deploy the rules again, or change the type back."
      )
    default:
      let role = result.string(row, 6) ?? ""
      return (
        "The gateway's role \(role) may not read column \(column) of \(table).",
        "GRANT SELECT ON \(table) TO \(role), and USAGE on its schema."
      )
    }
  }
}

extension StoredRules {
  fileprivate func name(of source: Int64) -> String? {
    sources.first { $0.id == source }.map { "\($0.schema).\($0.name)" }
  }

  fileprivate func name(ofDefinition id: Int64) -> String {
    definitions.first { $0.id == id }?.compiled.name ?? "\(id)"
  }
}

extension PostgresError {
  /// Whether a table stayed locked for longer than the session waits.
  var isLockTimeout: Bool { code == "55P03" }

  /// Whether trying again cannot help, since the statement does not fit the tables or their rows.
  var blamesStatement: Bool {
    exceedsRowSize
      || ["21", "22", "38", "39", "42", "44", "54", "P0"].contains { code.hasPrefix($0) }
  }

  fileprivate var exceedsRowSize: Bool { constraint == RowSize.constraint }
}
