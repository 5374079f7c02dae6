internal import Foundation
internal import Postgres
internal import SQLGeneration
internal import SyncRules

/// Writes a deployment into the database. Each step runs in a transaction of the caller's.
struct Registration {
  let connection: PostgresConnection
  let rules: CompiledRules

  /// Gives a table its number and its capture triggers.
  ///
  /// A key other than before makes other texts: the triggers are made anew, and the table is read again
  /// whole.
  func capture(_ table: CompiledTable) async throws {
    _ = try await connection.query(
      "SELECT pg_advisory_xact_lock($1::bigint)", [.integer(Sequencer.lockKey + 1)])
    let found = try await connection.query(
      "SELECT id, key FROM sluice.sources WHERE schema = $1::text AND name = $2::text",
      [.text(table.schema), .text(table.name)])
    if let known = found.firstInt(0) {
      if found.firstString(1) != Self.signature(of: table) {
        _ = try await connection.query("SELECT sluice.drop_capture($1::int)", [.integer(known)])
        _ = try await connection.query(
          "UPDATE sluice.sources SET files = '' WHERE id = $1::int", [.integer(known)])
      }
    } else {
      _ = try await connection.query(
        "INSERT INTO sluice.sources (schema, name, key) VALUES ($1::text, $2::text, '')",
        [.text(table.schema), .text(table.name)])
    }
    guard let source = try await Self.defineCapture(of: table, connection) else { return }
    let missing = try await connection.query(
      "SELECT sluice.uncaptured($1::int)", [.integer(source)])
    guard (missing.firstInt(0) ?? 0) > 0 else { return }
    _ = try await connection.query("SELECT sluice.ensure_capture($1::int)", [.integer(source)])
  }

  /// Makes the functions that a table's capture triggers call; answers its number.
  @discardableResult
  static func defineCapture(
    of table: CompiledTable, _ connection: PostgresConnection
  ) async throws -> Int64? {
    let result = try await connection.query(
      """
      UPDATE sluice.sources SET key = $3::text WHERE schema = $1::text AND name = $2::text
      RETURNING id
      """, [.text(table.schema), .text(table.name), .text(signature(of: table))])
    guard let source = result.firstInt(0) else { return nil }
    try await connection.execute(CaptureScript(source: source, key: table.key).functions)
    return source
  }

  /// Tells keys apart that make other texts.
  private static func signature(of table: CompiledTable) -> String { table.key.text(of: "s") }

  /// Makes the rules the generation that is being built, in place of one that still was.
  func generation(source text: String) async throws -> Int64 {
    _ = try await connection.query(
      "LOCK TABLE sluice.generations IN SHARE ROW EXCLUSIVE MODE")
    try await startFollowing()
    let kept = try await connection.query(
      """
      UPDATE sluice.definitions d SET state = 'retired'
      WHERE d.state = 'building' AND NOT EXISTS (
        SELECT FROM unnest($1::text[], $2::text[]) n(name, hash)
        WHERE n.name = d.name AND n.hash = d.content_hash)
      """, names)
    _ = kept
    _ = try await connection.query(
      "UPDATE sluice.generations SET state = 'retired' WHERE state = 'building'")
    let made = try await connection.query(
      """
      INSERT INTO sluice.generations (state, rules, source)
      VALUES ('building', $1::text, $2::text) RETURNING id
      """, [.text(try StoredRules.encode(rules)), .text(text)])
    for definition in rules.definitions {
      try await add(definition)
      try await addColumns(definition)
    }
    return made.firstInt(0) ?? 0
  }

  private var names: [PostgresValue] {
    [
      .textArray(rules.definitions.map(\.name)),
      .textArray(rules.definitions.map(\.contentHash)),
    ]
  }

  /// Tables that no rules in use read yet are followed from now on: as they are now, not as they were
  /// when some earlier rules read them.
  private func startFollowing() async throws {
    _ = try await connection.query(
      """
      UPDATE sluice.sources s SET files = sluice.files_seen(s.schema, s.name)
      WHERE NOT EXISTS (
        SELECT FROM (SELECT definition, source FROM sluice.queries
          UNION ALL SELECT definition, source FROM sluice.lookups) q
        JOIN sluice.definitions d ON d.id = q.definition
        WHERE q.source = s.id AND d.state <> 'retired')
      """)
  }

  /// A definition that is in use, or being built, with the same content stays as it is.
  private func add(_ definition: CompiledDefinition) async throws {
    let made = try await connection.query(
      """
      INSERT INTO sluice.definitions (name, content_hash, state)
      VALUES ($1::text, $2::text, 'building')
      ON CONFLICT (name, content_hash) WHERE state <> 'retired' DO NOTHING RETURNING id
      """, [.text(definition.name), .text(definition.contentHash)])
    guard let id = made.firstInt(0) else { return }
    for query in definition.queries {
      _ = try await connection.query(
        """
        INSERT INTO sluice.queries (definition, ordinal, source, output_name, uses_subkey)
        SELECT $1::bigint, $2::int, s.id, $3::text, $4::boolean FROM sluice.sources s
        WHERE s.schema = $5::text AND s.name = $6::text
        """,
        [
          .integer(id), .integer(Int64(query.ordinal)), .text(query.outputName),
          .boolean(query.usesSubkey), .text(query.source.schema), .text(query.source.name),
        ])
    }
    for lookup in definition.lookups {
      _ = try await connection.query(
        """
        INSERT INTO sluice.lookups (definition, ordinal, source)
        SELECT $1::bigint, $2::int, s.id FROM sluice.sources s
        WHERE s.schema = $3::text AND s.name = $4::text
        """,
        [
          .integer(id), .integer(Int64(lookup.ordinal)), .text(lookup.source.schema),
          .text(lookup.source.name),
        ])
    }
  }

  /// The rules were compiled against the columns as they are now. A definition that is kept while one
  /// of its columns is another than before stands still until it has read the table again.
  private func addColumns(_ definition: CompiledDefinition) async throws {
    let read =
      definition.queries.map { ($0.source, $0.columns) }
      + definition.lookups.map { ($0.source, $0.columns) }
    for (source, columns) in read {
      _ = try await connection.query(
        """
        WITH found AS (
          SELECT d.id AS definition, s.id AS source, a.attname::text AS name,
            sluice.type_read(a.atttypid) AS type, a.attnum AS number,
            a.attname = ANY ($6::text[]) AS is_key
          FROM sluice.definitions d
          JOIN sluice.sources s ON s.schema = $3::text AND s.name = $4::text
          JOIN pg_attribute a ON a.attrelid = to_regclass(format('%I.%I', s.schema, s.name))
            AND a.attname = ANY ($5::text[]) AND NOT a.attisdropped
          WHERE d.name = $1::text AND d.content_hash = $2::text AND d.state <> 'retired'
        ),
        changed AS (
          INSERT INTO sluice.suspensions (definition, source, is_catalog, problem, remedy)
          SELECT DISTINCT ON (f.definition, f.source) f.definition, f.source, true,
            format('Column %s of %s.%s is another one than before.', f.name, $3::text, $4::text),
            'The table is read again.'
          FROM found f JOIN sluice.columns_read r USING (definition, source, name)
          WHERE r.type <> f.type OR r.number <> f.number
          ON CONFLICT DO NOTHING
        )
        INSERT INTO sluice.columns_read (definition, source, name, type, number, is_key)
        SELECT f.definition, f.source, f.name, f.type, f.number, f.is_key FROM found f
        ON CONFLICT (definition, source, name) DO UPDATE
          SET type = excluded.type, number = excluded.number, is_key = excluded.is_key
        """,
        [
          .text(definition.name), .text(definition.contentHash), .text(source.schema),
          .text(source.name), .textArray(columns), .textArray(source.key.columns.map(\.name)),
        ])
    }
  }
}
