internal import Postgres
internal import SQLGeneration
internal import SyncProtocol

/// The one statement that says what a request may hold, for one generation of rules.
///
/// Binds: claims, parameters, subscriptions, whether default streams are included.
struct GrantStatement: Sendable {
  let generation: Int64
  let sql: String
  let schema: PublishedSchema
  private let bucketLimit: Int
  private let names: [Int64: String]
  private let streams: [GrantedStream]
  private let streamNames: [Int64: String]
  /// How many buckets, keys and errors a request may come to before buckets are counted once. It bounds
  /// what a request costs whose values multiply.
  private let stepLimit: Int
  /// How many keys a request may read. Each is remembered for as long as the request's stream is open.
  private let keyLimit: Int

  init(_ stored: StoredGeneration, bucketLimit: Int) {
    generation = stored.id
    self.bucketLimit = bucketLimit
    stepLimit = bucketLimit * 500
    keyLimit = bucketLimit * 50
    names = Dictionary(
      stored.definitions.map { ($0.id, $0.compiled.name) }, uniquingKeysWith: { first, _ in first })
    streamNames = stored.definitions.reduce(into: [:]) { names, definition in
      names[definition.id] = definition.compiled.stream?.name
    }
    streams = stored.definitions.reduce(into: []) { streams, definition in
      guard let stream = definition.compiled.stream else { return }
      guard !streams.contains(where: { $0.name == stream.name }) else { return }
      streams.append(GrantedStream(name: stream.name, isDefault: stream.isDefault))
    }
    schema = PublishedSchema(tables: stored.rules.schema.map(Self.published))
    let grants = stored.definitions.flatMap { definition in
      definition.compiled.grants.map { Self.select($0, of: definition) }
    }
    let nothing =
      "SELECT 0::bigint AS definition, NULL::bigint AS lookup, NULL::text AS bucket_key, "
      + "NULL::int AS priority, NULL::text AS lookup_key, NULL::int AS place, "
      + "NULL::text AS error WHERE false"
    sql = """
      WITH r AS MATERIALIZED (
        SELECT $1::text AS claims, $2::text AS parameters, $3::text AS subscriptions,
          $4::boolean AS include_defaults),
      h AS MATERIALIZED (SELECT * FROM sluice.ticks ORDER BY number DESC LIMIT 1),
      g AS MATERIALIZED (SELECT * FROM (
        \(([nothing] + grants).joined(separator: "\nUNION ALL "))) x LIMIT \(stepLimit + 1))
      SELECT h.number, h.stamp, h.boundary_id, h.generation, (SELECT count(*) FROM g), NULL::text,
        NULL::bigint, NULL::bigint, NULL::text FROM h
      UNION ALL
      (SELECT b.priority, b.bucket_key, k.id, i.row_count, b.definition,
        lpad(to_hex(i.digest), 16, '0'), i.last_id,
        greatest(i.floor_id, (SELECT d.floor_id FROM sluice.definitions d WHERE d.id = b.definition)),
        b.places
      FROM (
        SELECT g.definition, g.bucket_key COLLATE "C" AS bucket_key, min(g.priority) AS priority,
          string_agg(DISTINCT g.place::text, ',') AS places
        FROM g WHERE g.bucket_key IS NOT NULL GROUP BY g.definition, g.bucket_key COLLATE "C"
        LIMIT \(bucketLimit + 1)) b
      LEFT JOIN LATERAL (SELECT k.id FROM sluice.buckets k WHERE k.definition = b.definition
        AND hashtextextended(k.key, 0::bigint) = hashtextextended(b.bucket_key, 0::bigint)
        AND k.key = b.bucket_key LIMIT 1) k ON true
      LEFT JOIN sluice.bucket_heads i ON i.bucket = k.id)
      UNION ALL
      (SELECT DISTINCT g.lookup, g.lookup_key, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text,
        NULL::bigint, NULL::bigint, NULL::text
      FROM g WHERE g.lookup IS NOT NULL AND g.lookup_key IS NOT NULL LIMIT \(keyLimit + 1))
      UNION ALL
      (SELECT DISTINCT g.definition, NULL::text, g.place::bigint, NULL::bigint, NULL::bigint,
        NULL::text, NULL::bigint, NULL::bigint, g.error FROM g WHERE g.error IS NOT NULL)
      """
  }

  private static func select(_ grant: CompiledGrant, of definition: StoredDefinition) -> String {
    let sql = grant.sql { ordinal in
      definition.lookups.first { $0.compiled.ordinal == ordinal }?.id ?? 0
    }
    return "SELECT \(definition.id)::bigint, x.lookup, "
      + "x.bucket_key::text, coalesce(x.priority, \(definition.compiled.priority))::int, "
      + "x.lookup_key::text, x.subscription_place, x.error FROM (\(sql)) x"
  }

  private static func published(_ table: SQLGeneration.PublishedTable)
    -> SyncProtocol.PublishedTable
  {
    SyncProtocol.PublishedTable(
      name: table.name,
      columns: table.columns.map {
        PublishedColumn(name: $0.name, type: PublishedColumn.Kind(rawValue: $0.type) ?? .any)
      })
  }

  /// Reads the answer; nil when it was made under other rules.
  func state(_ result: PostgresResult) throws -> CheckpointState? {
    guard let head = ResultHead(result, row: 0, column: 0) else {
      throw StorageError(.notInstalled, "the database has no first tick")
    }
    guard head.generation == generation else { return nil }
    guard result.int(0, 4) ?? 0 <= Int64(stepLimit) else { throw tooMany }
    var state = CheckpointState(
      tick: head.tick, generation: generation, buckets: [], lookupKeys: [], streams: streams)
    for row in 1..<result.rowCount {
      guard let number = result.int(row, 0) else { continue }
      guard let key = result.string(row, 1) else {
        if let stream = streamNames[number], let message = result.string(row, 8) {
          state.faults.append(
            SubscriptionFault(
              stream: stream, place: result.int(row, 2).map { Int($0) }, message: message))
        }
        continue
      }
      guard let definition = result.int(row, 4), let name = names[definition] else {
        state.lookupKeys.append(LookupKey(lookup: number, key: key))
        continue
      }
      let places = (result.string(row, 8) ?? "").split(separator: ",").compactMap { Int($0) }
      state.buckets.append(
        GrantedBucket(
          name: name + key, rowID: result.int(row, 2), definition: name, priority: Int(number),
          count: result.int(row, 3) ?? 0, digest: result.string(row, 5) ?? BucketHead.noDigest,
          lastID: result.int(row, 6) ?? 0, floorID: result.int(row, 7) ?? 0,
          subscriptions: places.sorted()))
    }
    // Definitions of one stream that read the same value find the same fault.
    state.faults = Set(state.faults).sorted {
      ($0.place ?? -1, $0.stream, $0.message) < ($1.place ?? -1, $1.stream, $1.message)
    }
    guard state.buckets.count <= bucketLimit, state.lookupKeys.count <= keyLimit else {
      throw tooMany
    }
    state.buckets.sort { ($0.priority, $0.name) < ($1.priority, $1.name) }
    return state
  }

  private var tooMany: StorageError {
    StorageError(
      .tooManyBuckets,
      "the request may hold more than \(bucketLimit) buckets, or is led to them by more than "
        + "\(keyLimit) keys",
      hint: "Let a definition's parameters divide the data less finely.")
  }
}
