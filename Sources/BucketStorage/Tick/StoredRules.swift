internal import Foundation
internal import Postgres
internal import SQLGeneration

/// A table that is followed, with its number in the inbox.
struct StoredSource: Sendable, Equatable {
  let id: Int64
  let schema: String
  let name: String
}

struct StoredQuery: Sendable {
  let id: Int64
  let definition: Int64
  let source: StoredSource
  let isComplete: Bool
  let compiled: CompiledQuery
}

struct StoredLookup: Sendable {
  let id: Int64
  let definition: Int64
  let source: StoredSource
  let isComplete: Bool
  let compiled: CompiledLookup
}

struct StoredDefinition: Sendable {
  let id: Int64
  let isActive: Bool
  let compiled: CompiledDefinition
  let queries: [StoredQuery]
  let lookups: [StoredLookup]
}

/// One deployment of rules.
struct StoredGeneration: Sendable {
  let id: Int64
  let isActive: Bool
  let rules: CompiledRules
  /// In the rules' order.
  let definitions: [StoredDefinition]
}

/// The rules that the database holds: those in force, and those being built.
struct StoredRules: Sendable {
  let active: StoredGeneration?
  let building: StoredGeneration?

  static let empty = StoredRules(active: nil, building: nil)

  /// Changes with every deployment and activation.
  var version: String { "\(active?.id ?? 0)/\(building?.id ?? 0)" }

  /// Every definition that is kept up to date, once.
  var definitions: [StoredDefinition] {
    let first = active?.definitions ?? []
    let known = Set(first.map(\.id))
    return first + (building?.definitions ?? []).filter { !known.contains($0.id) }
  }

  var queries: [StoredQuery] { definitions.flatMap(\.queries) }
  var lookups: [StoredLookup] { definitions.flatMap(\.lookups) }

  var sources: [StoredSource] {
    var known = Set<Int64>()
    return (queries.map(\.source) + lookups.map(\.source)).filter { known.insert($0.id).inserted }
  }

  /// SQL whose one value is the `version` in the caller's snapshot.
  static let versionSQL = """
    (SELECT coalesce(max(id) FILTER (WHERE state = 'active'), 0) || '/'
      || coalesce(max(id) FILTER (WHERE state = 'building'), 0)
      FROM sluice.generations WHERE state <> 'retired')
    """

  /// Reads the rules, and their numbers, in one snapshot of its own.
  static func load(_ connection: PostgresConnection) async throws -> StoredRules {
    let results = try await connection.pipeline([
      ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", []),
      ("SELECT id, state, rules FROM sluice.generations WHERE state <> 'retired' ORDER BY id", []),
      (
        "SELECT id, name, content_hash, state FROM sluice.definitions WHERE state <> 'retired'", []
      ),
      (
        """
        SELECT 'q', q.id, q.definition, q.ordinal, q.is_complete, s.id, s.schema, s.name
        FROM sluice.queries q JOIN sluice.sources s ON s.id = q.source
        JOIN sluice.definitions d ON d.id = q.definition AND d.state <> 'retired'
        UNION ALL
        SELECT 'l', l.id, l.definition, l.ordinal, l.is_complete, s.id, s.schema, s.name
        FROM sluice.lookups l JOIN sluice.sources s ON s.id = l.source
        JOIN sluice.definitions d ON d.id = l.definition AND d.state <> 'retired'
        """, []
      ),
      ("COMMIT", []),
    ])
    let parts = Parts(definitions: results[2], members: results[3])
    var active: StoredGeneration?
    var building: StoredGeneration?
    let generations = results[1]
    for row in 0..<generations.rowCount {
      guard let id = generations.int(row, 0), let text = generations.string(row, 2) else {
        continue
      }
      let isActive = generations.string(row, 1) == "active"
      let rules = try decode(text)
      let generation = StoredGeneration(
        id: id, isActive: isActive, rules: rules,
        definitions: try rules.definitions.map { try parts.definition($0) })
      if isActive { active = generation } else { building = generation }
    }
    return StoredRules(active: active, building: building)
  }

  static func decode(_ text: String) throws -> CompiledRules {
    do {
      return try JSONDecoder().decode(CompiledRules.self, from: Data(text.utf8))
    } catch {
      throw StorageError(
        .rulesUnreadable, "the stored rules were made by another version of Sluice",
        hint: "Deploy the rules again.", underlying: error)
    }
  }

  static func encode(_ rules: CompiledRules) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(rules), as: UTF8.self)
  }
}

/// The numbers that the database gave to definitions, queries and lookups.
private struct Parts {
  struct Key: Hashable {
    let name: String
    let hash: String
  }
  struct Member {
    let id: Int64
    let ordinal: Int64
    let isComplete: Bool
    let source: StoredSource
  }

  private var definitions: [Key: (id: Int64, isActive: Bool)] = [:]
  private var queries: [Int64: [Member]] = [:]
  private var lookups: [Int64: [Member]] = [:]

  init(definitions: PostgresResult, members: PostgresResult) {
    for row in 0..<definitions.rowCount {
      guard let id = definitions.int(row, 0), let name = definitions.string(row, 1),
        let hash = definitions.string(row, 2)
      else { continue }
      self.definitions[Key(name: name, hash: hash)] = (id, definitions.string(row, 3) == "active")
    }
    for row in 0..<members.rowCount {
      guard let id = members.int(row, 1), let definition = members.int(row, 2),
        let ordinal = members.int(row, 3), let source = members.int(row, 5),
        let schema = members.string(row, 6), let name = members.string(row, 7)
      else { continue }
      let member = Member(
        id: id, ordinal: ordinal, isComplete: members.bool(row, 4) ?? false,
        source: StoredSource(id: source, schema: schema, name: name))
      if members.string(row, 0) == "q" {
        queries[definition, default: []].append(member)
      } else {
        lookups[definition, default: []].append(member)
      }
    }
  }

  func definition(_ compiled: CompiledDefinition) throws -> StoredDefinition {
    guard let found = definitions[Key(name: compiled.name, hash: compiled.contentHash)] else {
      throw missing(compiled.name)
    }
    return StoredDefinition(
      id: found.id, isActive: found.isActive, compiled: compiled,
      queries: try compiled.queries.map { query in
        let member = try member(queries[found.id], query.ordinal, of: compiled.name)
        return StoredQuery(
          id: member.id, definition: found.id, source: member.source,
          isComplete: member.isComplete, compiled: query)
      },
      lookups: try compiled.lookups.map { lookup in
        let member = try member(lookups[found.id], lookup.ordinal, of: compiled.name)
        return StoredLookup(
          id: member.id, definition: found.id, source: member.source,
          isComplete: member.isComplete, compiled: lookup)
      })
  }

  private func member(_ members: [Member]?, _ ordinal: Int, of name: String) throws -> Member {
    guard let member = members?.first(where: { $0.ordinal == Int64(ordinal) }) else {
      throw missing(name)
    }
    return member
  }

  private func missing(_ name: String) -> StorageError {
    StorageError(
      .rulesUnreadable, "the stored rules and their definitions do not fit together",
      hint: "Deploy the rules again.")
  }
}
