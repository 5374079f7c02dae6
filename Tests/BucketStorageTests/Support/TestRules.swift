import BucketStorage
import SQLGeneration
import SyncRules

/// Compiled rules written by hand.
enum TestRules {
  static func column(_ name: String, _ type: String, _ form: SourceKey.Form = .exact)
    -> SourceKey.Column
  {
    SourceKey.Column(name: name, typeSchema: "pg_catalog", typeName: type, form: form)
  }

  static func table(_ name: String, key: [SourceKey.Column]) -> CompiledTable {
    CompiledTable(schema: "public", name: name, key: SourceKey(columns: key))
  }

  static let todos = table("todos", key: [column("id", "int4")])

  /// One definition over one table: buckets by an SQL expression over `s`.
  static func definition(
    _ name: String, table: CompiledTable, bucket: String, object: String = "s.id::text",
    data: String, condition: String = "", hash: String? = nil, usesSubkey: Bool = false,
    joins: String = "", columns: [String] = ["id", "list_id", "title"]
  ) -> CompiledDefinition {
    let branch = CompiledBranch(
      joins: joins, columns: [bucket, object, data], condition: condition)
    return CompiledDefinition(
      name: name, priority: 3, contentHash: hash ?? "\(name)1",
      queries: [
        CompiledQuery(
          ordinal: 0, table: 0, outputName: table.name, contentHash: "q", usesSubkey: usesSubkey,
          source: table, branches: [branch], columns: columns)
      ],
      lookups: [],
      grants: [
        CompiledGrant(
          ordinal: 0, lookups: [],
          pieces: [
            "SELECT '[' || (r.claims::json -> 'list')::text || ']' AS bucket_key, NULL::int AS priority, "
              + "NULL::bigint AS lookup, NULL::text AS lookup_key, NULL::int AS subscription_place, "
              + "NULL::text AS error FROM r"
          ])
      ])
  }

  static func rules(_ definitions: [CompiledDefinition]) -> CompiledRules {
    var tables: [CompiledTable] = []
    for definition in definitions {
      for table in definition.queries.map(\.source) + definition.lookups.map(\.source)
      where !tables.contains(table) { tables.append(table) }
    }
    return CompiledRules(
      definitions: definitions.map { definition in
        var definition = definition
        for index in definition.queries.indices {
          definition.queries[index].table = tables.firstIndex(of: definition.queries[index].source)!
        }
        for index in definition.lookups.indices {
          definition.lookups[index].table = tables.firstIndex(of: definition.lookups[index].source)!
        }
        return definition
      },
      tables: tables,
      schema: [PublishedTable(name: "todos", columns: [.init(name: "title", type: "text")])],
      helperVersion: 1)
  }

  /// Todos by list.
  static let byList = rules([
    definition(
      "by_list", table: todos, bucket: "'[' || s.list_id || ']'",
      data: "json_build_object('id', s.id, 'title', s.title)::text")
  ])
}
