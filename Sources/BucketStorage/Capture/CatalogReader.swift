package import Postgres
package import SyncRules

/// Reads what the rules compiler needs to know of a database.
package struct CatalogReader: Sendable {
  package init() {}

  /// Every table outside the system's schemas and Sluice's own.
  package func read(_ connection: PostgresConnection) async throws -> Catalog {
    let results = try await connection.pipeline([
      ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", []),
      (Self.types, []), (Self.attributes, []), (Self.relations, []), (Self.columns, []),
      (Self.keys, []), (Self.partitions, []),
      ("COMMIT", []),
    ])
    let types = TypeTable(types: results[1], attributes: results[2])
    var columns: [Int64: [CatalogColumn]] = [:]
    results[4].each { row in
      guard let relation = results[4].int(row, 0), let name = results[4].string(row, 1),
        let type = results[4].int(row, 2)
      else { return }
      columns[relation, default: []].append(
        CatalogColumn(
          name: name, type: types.type(type), notNull: results[4].bool(row, 3) ?? false,
          generated: results[4].bool(row, 4) ?? false,
          hasDeterministicCollation: results[4].bool(row, 5) ?? true))
    }
    var keys: [Int64: [String]] = [:]
    results[5].each { row in
      guard let relation = results[5].int(row, 0), let column = results[5].string(row, 1) else {
        return
      }
      keys[relation, default: []].append(column)
    }
    var partitions: [Int64: [CatalogRelationName]] = [:]
    results[6].each { row in
      guard let root = results[6].int(row, 0), let schema = results[6].string(row, 1),
        let name = results[6].string(row, 2)
      else { return }
      partitions[root, default: []].append(CatalogRelationName(schema: schema, name: name))
    }
    var tables: [CatalogTable] = []
    let relations = results[3]
    relations.each { row in
      guard let id = relations.int(row, 0), let schema = relations.string(row, 1),
        let name = relations.string(row, 2), let kind = Self.kind(relations.string(row, 3))
      else { return }
      tables.append(
        CatalogTable(
          schema: schema, name: name, kind: kind, columns: columns[id] ?? [],
          key: keys[id] ?? [], partitions: partitions[id] ?? []))
    }
    return Catalog(tables: tables)
  }

  private static func kind(_ letter: String?) -> CatalogTable.Kind? {
    switch letter {
    case "r": .table
    case "p": .partitioned
    case "v": .view
    case "m": .materializedView
    case "f": .foreign
    default: nil
    }
  }

  private static let ours = """
    n.nspname NOT IN ('pg_catalog', 'information_schema', 'sluice')
      AND n.nspname !~ '^pg_(toast|temp)' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    """

  private static let types = """
    SELECT t.oid, n.nspname, t.typname, t.typtype, t.typbasetype, t.typelem, t.typcategory,
      t.typrelid, coalesce(r.rngsubtype, m.rngsubtype), coalesce(m.rngtypid, 0)
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid
    LEFT JOIN pg_catalog.pg_range m ON m.rngmultitypid = t.oid
    """

  private static let attributes = """
    SELECT a.attrelid, a.attname, a.atttypid FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('c', 'r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'sluice')
    ORDER BY a.attrelid, a.attnum
    """

  private static let relations = """
    SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE \(ours) ORDER BY n.nspname, c.relname
    """

  private static let columns = """
    SELECT a.attrelid, a.attname, a.atttypid, a.attnotnull, a.attgenerated <> '',
      coalesce(l.collisdeterministic, true)
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
    WHERE \(ours) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attrelid, a.attnum
    """

  /// The primary key; without one, the unique index of not-null columns that the table is replicated by,
  /// or else the one of fewest columns.
  private static let keys = """
    SELECT k.indrelid, a.attname
    FROM (
      SELECT DISTINCT ON (i.indrelid) i.indrelid, i.indkey::int2[] AS columns, i.indnkeyatts AS width
      FROM pg_catalog.pg_index i
      JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE \(ours) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
        AND i.indexprs IS NULL AND (i.indisprimary OR i.indimmediate)
        AND NOT EXISTS (
          SELECT FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) u(number)
          JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.number
          WHERE NOT a.attnotnull)
      ORDER BY i.indrelid, i.indisprimary DESC, i.indisreplident DESC, i.indnkeyatts, i.indexrelid
    ) k
    CROSS JOIN LATERAL unnest(k.columns[0:k.width - 1]) WITH ORDINALITY u(number, position)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.indrelid AND a.attnum = u.number
    ORDER BY k.indrelid, u.position
    """

  private static let partitions = """
    SELECT c.oid, ln.nspname, l.relname FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL pg_catalog.pg_partition_tree(c.oid) p
    JOIN pg_catalog.pg_class l ON l.oid = p.relid
    JOIN pg_catalog.pg_namespace ln ON ln.oid = l.relnamespace
    WHERE \(ours) AND c.relkind = 'p' AND p.isleaf AND p.relid <> c.oid
    ORDER BY c.oid, ln.nspname, l.relname
    """
}

extension PostgresResult {
  fileprivate func each(_ body: (Int) -> Void) {
    for row in 0..<rowCount { body(row) }
  }
}
