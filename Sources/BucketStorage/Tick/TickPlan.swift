internal import Postgres

/// What a tick found to do in its snapshot.
struct TickFindings: Sendable {
  /// Sources with captured changes.
  var captured: Set<Int64> = []
  /// Sources of which everything is looked at again: truncated, rewritten, or given other partitions.
  var whole: Set<Int64> = []
  /// The files of sources whose files changed.
  var files: [Int64: String] = [:]
  /// Whether this is another database, or another timeline, than the last tick's.
  var hasMoved = false
  /// The next page of a backfill.
  var page: BackfillPage?
  /// Whether every query of the generation being built is complete.
  var activates = false
  /// Definitions that stood still and are brought up to date from the whole of their sources.
  var resuming: Set<Int64> = []

  var isEmpty: Bool {
    captured.isEmpty && whole.isEmpty && files.isEmpty && !hasMoved && page == nil && !activates
      && resuming.isEmpty
  }
}

/// One page of one backfill.
struct BackfillPage: Sendable {
  enum Target: Sendable {
    case query(StoredQuery)
    case lookup(StoredLookup)
  }

  var target: Target
  /// The last key of the page before.
  var after: String?

  var source: StoredSource {
    switch target {
    case .query(let query): query.source
    case .lookup(let lookup): lookup.source
    }
  }
}

/// What a statement of a tick evaluates.
struct TickPart: Sendable, Hashable {
  let definition: Int64
  let source: Int64
}

/// An error of a statement that evaluates the rules.
struct EvaluationFailure: Error {
  let part: TickPart
  let error: PostgresError
}

/// The statements of a tick after its findings, in the order in which they run.
struct TickPlan {
  typealias Statement = (sql: String, binds: [PostgresValue])

  let rules: StoredRules
  let head: TickHead
  let stamp: String
  let findings: TickFindings
  let backfillLimit: Int
  /// The sources over which definitions that stand still cannot be evaluated.
  let suspended: [Int64: Set<Int64>]

  /// A statement, and whom to blame when it fails.
  struct Change {
    let statement: Statement
    let part: TickPart
  }

  private var number: Int64 { head.tick.number + 1 }

  /// After a move ids jump over everything that the lost history can have given out.
  private var firstID: Int64 {
    let boundary = head.tick.boundaryID
    return findings.hasMoved ? boundary + IDRanges.jump : boundary
  }

  /// Statements that write entries and parameters; each answers a count in its first column.
  ///
  /// The buckets of a definition that stands still keep what they hold. Its lookups that can be
  /// evaluated still lose what no longer holds, so that access that is taken away is gone.
  var changes: [Change] {
    var changes: [Change] = []
    for query in rules.queries where suspended[query.definition] == nil {
      guard let dirty = dirty(query.source, of: query.definition) else { continue }
      changes.append(
        Change(
          statement: (EntryStatements(query: query).update(dirty), binds(dirty)),
          part: TickPart(definition: query.definition, source: query.source.id)))
    }
    for lookup in rules.lookups {
      let broken = suspended[lookup.definition]
      guard broken?.contains(lookup.source.id) != true,
        let dirty = dirty(lookup.source, of: lookup.definition)
      else { continue }
      let sql = LookupStatements(lookup: lookup).update(dirty, withdrawsOnly: broken != nil)
      changes.append(
        Change(
          statement: (sql, binds(dirty)),
          part: TickPart(definition: lookup.definition, source: lookup.source.id)))
    }
    return changes + wakeups
  }

  /// After everything that was evaluated for the same rows.
  private var wakeups: [Change] {
    var changes: [Change] = []
    for source in rules.sources {
      let queries = rules.queries.filter {
        $0.source == source && suspended[$0.definition] == nil
      }
      let lookups = rules.lookups.filter {
        $0.source == source && suspended[$0.definition]?.contains(source.id) != true
      }
      let readers = queries.map(\.definition) + lookups.map(\.definition)
      guard let statements = WakeupStatements(of: source, queries, lookups),
        let reader = readers.first
      else { continue }
      let part = TickPart(definition: reader, source: source.id)
      let dirty = readers.compactMap { self.dirty(source, of: $0) }
      if let first = dirty.first {
        let all: DirtyKeys = dirty.contains(.everything) ? .everything : first
        changes.append(Change(statement: (statements.update(all), binds(all)), part: part))
      }
      guard let page = findings.page, page.source == source else { continue }
      let after = page.after.map { [PostgresValue.text($0)] } ?? []
      changes.append(
        Change(
          statement: (
            statements.backfill(first: page.after == nil, limit: backfillLimit),
            [.text(stamp), .integer(number)] + after
          ), part: part))
    }
    return changes
  }

  var backfill: Change? {
    guard let page = findings.page else { return nil }
    let first = page.after == nil
    let sql: String
    let part: TickPart
    switch page.target {
    case .query(let query):
      sql = EntryStatements(query: query).backfill(first: first, limit: backfillLimit)
      part = TickPart(definition: query.definition, source: query.source.id)
    case .lookup(let lookup):
      sql = LookupStatements(lookup: lookup).backfill(first: first, limit: backfillLimit)
      part = TickPart(definition: lookup.definition, source: lookup.source.id)
    }
    let after = page.after.map { [PostgresValue.text($0)] } ?? []
    return Change(statement: (sql, [.text(stamp), .integer(number)] + after), part: part)
  }

  /// Statements before the changes.
  var opening: [Statement] {
    var statements: [Statement] = [
      ("SELECT set_config('sluice.last_id', $1::text, true)", [.text("\(firstID)")]),
      ("SELECT set_config('sluice.now', $1::text, true)", [.text(stamp)]),
    ]
    if findings.hasMoved {
      // Ids and transaction ids of the inbox belong to the other history; everything is read again.
      statements.append(("DELETE FROM sluice.inbox", []))
      statements.append((IDRanges.close, [.integer(head.tick.boundaryID)]))
      statements.append((IDRanges.open, [.integer(firstID)]))
    }
    if !findings.resuming.isEmpty {
      statements.append(
        (
          "DELETE FROM sluice.suspensions WHERE definition = ANY ($1::bigint[])",
          [.integerArray(findings.resuming.sorted())]
        ))
      statements.append(
        (
          """
          UPDATE sluice.columns_read r SET number = a.attnum
          FROM sluice.sources s, pg_attribute a
          WHERE r.definition = ANY ($1::bigint[]) AND s.id = r.source
            AND a.attrelid = to_regclass(format('%I.%I', s.schema, s.name))
            AND a.attname = r.name AND r.number <> a.attnum
          """, [.integerArray(findings.resuming.sorted())]
        ))
    }
    return statements
  }

  /// Statements after the changes; the tick's row is the answer to the first.
  var closing: [Statement] {
    let generation =
      findings.activates ? rules.building?.id ?? head.generation : head.generation
    var statements: [Statement] = [
      (
        TickHead.insert,
        [
          .integer(number), .text(stamp), .integer(firstID), .integer(generation),
        ]
      ),
      // Whoever reads the clock noted the next turns; nobody may do so any more.
      (WakeupStatements.forgetDue, [.text(stamp)]),
    ]
    if findings.activates { statements += activation }
    for (source, files) in findings.files.sorted(by: { $0.key < $1.key }) {
      statements.append(
        (
          "UPDATE sluice.sources SET files = $2::text WHERE id = $1::int",
          [.integer(source), .text(files)]
        ))
    }
    statements.append(
      ("SELECT sluice.assert_files($1::int[])", [.integerArray(rules.sources.map(\.id))]))
    statements.append(("SELECT sluice.assert_columns($1::int[])", [.integerArray(sourcesRead)]))
    statements.append(("COMMIT", []))
    statements.append(("SELECT pg_notify('sluice', $1::text)", [.text("\(number)")]))
    return statements
  }

  private var sourcesRead: [Int64] {
    // Backfills and resumptions are rare: no need to know exactly what they read.
    guard findings.page == nil, findings.resuming.isEmpty else { return rules.sources.map(\.id) }
    return findings.captured.union(findings.whole).sorted()
  }

  private var activation: [Statement] {
    let definitions = rules.building?.definitions.map(\.id) ?? []
    return [
      (
        "UPDATE sluice.definitions SET state = 'retired' "
          + "WHERE state <> 'retired' AND id <> ALL ($1::bigint[])",
        [.integerArray(definitions)]
      ),
      // What clients hold under the same names came from other definitions.
      (
        "UPDATE sluice.definitions SET state = 'active', "
          + "floor_id = greatest(sluice.tick_last_id(), $1::bigint + 16) WHERE state = 'building'",
        [.integer(firstID)]
      ),
      ("UPDATE sluice.generations SET state = 'retired' WHERE state = 'active'", []),
      (
        "UPDATE sluice.generations SET state = 'active', activated_at = clock_timestamp() "
          + "WHERE state = 'building'", []
      ),
    ]
  }

  private func dirty(_ source: StoredSource, of definition: Int64) -> DirtyKeys? {
    if findings.resuming.contains(definition) { return .everything }
    if findings.whole.contains(source.id) { return .everything }
    return findings.captured.contains(source.id) ? .captured : nil
  }

  private func binds(_ dirty: DirtyKeys) -> [PostgresValue] {
    let base: [PostgresValue] = [.text(stamp), .integer(number)]
    return dirty == .captured ? base + [.text(head.xmax), .text(head.xip)] : base
  }
}
