/// A rules file as SQL: what the storage installs, evaluates and asks.
package struct CompiledRules: Codable, Sendable, Equatable {
  package var definitions: [CompiledDefinition]
  /// Every table that a query or a lookup reads.
  package var tables: [CompiledTable]
  /// The tables that replicas have.
  package var schema: [PublishedTable]
  /// The version of the helper functions that the SQL calls.
  package var helperVersion: Int

  package init(
    definitions: [CompiledDefinition], tables: [CompiledTable], schema: [PublishedTable],
    helperVersion: Int
  ) {
    self.definitions = definitions
    self.tables = tables
    self.schema = schema
    self.helperVersion = helperVersion
  }

  /// The settings that a session must have to evaluate compiled SQL.
  ///
  /// Output functions of dates, floats, intervals and bytes read them, and unqualified operators
  /// resolve in `pg_catalog`.
  package static let sessionSettings: [String: String] = [
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "standard_conforming_strings": "on",
    "jit": "off",
  ]
}

/// A source table that rules name.
package struct CompiledTable: Codable, Sendable, Equatable {
  package var schema: String
  package var name: String
  package var key: SourceKey

  package init(schema: String, name: String, key: SourceKey) {
    self.schema = schema
    self.name = name
    self.key = key
  }
}

/// A table of the replicas.
package struct PublishedTable: Codable, Sendable, Equatable {
  package struct Column: Codable, Sendable, Equatable {
    package var name: String
    /// `text`, `integer`, `real` or `any`.
    package var type: String

    package init(name: String, type: String) {
      self.name = name
      self.type = type
    }
  }

  package var name: String
  /// The columns except `id`.
  package var columns: [Column]

  package init(name: String, columns: [Column]) {
    self.name = name
    self.columns = columns
  }
}

/// One definition of the rules.
package struct CompiledDefinition: Codable, Sendable, Equatable {
  package var name: String
  /// Nil for a bucket definition.
  package var stream: CompiledStream?
  /// The priority of its buckets, 0 first, where a grant does not say otherwise.
  package var priority: Int
  /// Changes exactly when the definition means something else.
  package var contentHash: String
  package var queries: [CompiledQuery]
  package var lookups: [CompiledLookup]
  package var grants: [CompiledGrant]

  package init(
    name: String, stream: CompiledStream? = nil, priority: Int, contentHash: String,
    queries: [CompiledQuery], lookups: [CompiledLookup], grants: [CompiledGrant]
  ) {
    self.name = name
    self.stream = stream
    self.priority = priority
    self.contentHash = contentHash
    self.queries = queries
    self.lookups = lookups
    self.grants = grants
  }
}

/// One way in which a source row reaches an output: a SELECT over the row `s`.
package struct CompiledBranch: Codable, Sendable, Equatable {
  /// Relations joined laterally to the row, starting with `CROSS JOIN`, or empty.
  package var joins: String
  /// Expressions for the output columns, in order.
  package var columns: [String]
  /// The condition on the row, or empty.
  package var condition: String

  package init(joins: String = "", columns: [String], condition: String = "") {
    self.joins = joins
    self.columns = columns
    self.condition = condition
  }
}

/// One data query: rows of a table as entries of buckets.
package struct CompiledQuery: Codable, Sendable, Equatable {
  package var ordinal: Int
  /// Index into `CompiledRules.tables`.
  package var table: Int
  package var outputName: String
  package var contentHash: String
  /// True when the definition may give the same table and id twice in one bucket.
  package var usesSubkey: Bool
  package var source: CompiledTable
  package var branches: [CompiledBranch]
  /// The columns of the table that it reads, those of the key included.
  package var columns: [String]
  /// The instants, as SQL over the row `s`, at which a row may come out otherwise without being changed.
  package var moments: [String]

  package init(
    ordinal: Int, table: Int, outputName: String, contentHash: String, usesSubkey: Bool,
    source: CompiledTable, branches: [CompiledBranch], columns: [String], moments: [String] = []
  ) {
    self.moments = moments
    self.ordinal = ordinal
    self.table = table
    self.outputName = outputName
    self.contentHash = contentHash
    self.usesSubkey = usesSubkey
    self.source = source
    self.branches = branches
    self.columns = columns
  }

  private static let columns = ["bucket_key", "object_id", "data"]

  private var statements: SourceEvaluation {
    SourceEvaluation(source: source, columns: Self.columns, branches: branches)
  }

  /// Whether a row gives one entry at most.
  package var isPlain: Bool { branches.count == 1 && branches[0].joins.isEmpty }

  /// The entries of the rows whose keys are in `dirty`, an SQL relation with a column `key`.
  ///
  /// Columns: `source_key`, `bucket_key`, `object_id`, `data`.
  package func evaluation(dirty: String) -> String {
    statements.overKeys(of: dirty)
  }

  /// The entries of the row whose key is the SQL expression `key`, to be joined laterally. The
  /// expression comes from `keys(of:keeping:)`. Columns: `bucket_key`, `object_id`, `data`.
  package func evaluation(key: String) -> String {
    statements.ofKey(key)
  }

  /// The keys of the SQL relation `dirty` as a relation `d` that does not keep indexes from being used.
  package static func keys(of dirty: String, keeping others: [String]) -> String {
    SourceEvaluation.keys(of: dirty, keeping: others)
  }

  /// The entries of every row of the table, with the same columns.
  package func evaluationAll() -> String {
    statements.overAll()
  }

  /// The entries of the rows that the SQL relation `rows` holds, with the table's `columns`.
  package func evaluation(rows: String) -> String {
    statements.over(rows: rows)
  }
}

/// One materialised parameter query: rows of a table as values found by keys.
package struct CompiledLookup: Codable, Sendable, Equatable {
  package var ordinal: Int
  /// Index into `CompiledRules.tables`.
  package var table: Int
  package var contentHash: String
  package var source: CompiledTable
  package var branches: [CompiledBranch]
  /// The columns of the table that it reads, those of the key included.
  package var columns: [String]
  /// As in a query.
  package var moments: [String]

  package init(
    ordinal: Int, table: Int, contentHash: String, source: CompiledTable,
    branches: [CompiledBranch], columns: [String], moments: [String] = []
  ) {
    self.moments = moments
    self.ordinal = ordinal
    self.table = table
    self.contentHash = contentHash
    self.source = source
    self.branches = branches
    self.columns = columns
  }

  private static let columns = ["key", "value"]

  private var statements: SourceEvaluation {
    SourceEvaluation(source: source, columns: Self.columns, branches: branches)
  }

  /// The values of the rows whose keys are in `dirty`, an SQL relation with a column `key`.
  ///
  /// Columns: `source_key`, `key`, `value`; the last two are JSON arrays as text.
  package func evaluation(dirty: String) -> String {
    statements.overKeys(of: dirty)
  }

  /// The values of every row of the table, with the same columns.
  package func evaluationAll() -> String {
    statements.overAll()
  }

  /// The values of the rows that the SQL relation `rows` holds, with the table's `columns`.
  package func evaluation(rows: String) -> String {
    statements.over(rows: rows)
  }
}

/// The stream that a definition is a part of.
package struct CompiledStream: Codable, Sendable, Equatable {
  package var name: String
  /// Whether clients have it without asking.
  package var isDefault: Bool

  package init(name: String, isDefault: Bool) {
    self.name = name
    self.isDefault = isDefault
  }
}

/// One way for a request to reach buckets of a definition.
package struct CompiledGrant: Codable, Sendable, Equatable {
  package var ordinal: Int
  /// The ordinals of the definition's lookups whose numbers stand between the pieces.
  package var lookups: [Int]
  /// One more than `lookups`.
  package var pieces: [String]

  package init(ordinal: Int, lookups: [Int], pieces: [String]) {
    self.ordinal = ordinal
    self.lookups = lookups
    self.pieces = pieces
  }

  /// A SELECT over the relation `r(claims text, parameters text, subscriptions text,
  /// include_defaults boolean)` and `sluice.parameters`.
  ///
  /// Columns: `bucket_key text`, `priority int`, `lookup bigint`, `lookup_key text`,
  /// `subscription_place int` (NULL for bucket definitions and default streams) and `error text`. A row
  /// is a bucket, or a key that was consulted, or an error. `number` gives the number under which the
  /// rows of a lookup stand in `sluice.parameters.lookup`.
  package func sql(number: (Int) -> Int64) -> String {
    var sql = pieces[0]
    for (lookup, piece) in zip(lookups, pieces.dropFirst()) {
      sql += "\(number(lookup))::bigint" + piece
    }
    return sql
  }
}
