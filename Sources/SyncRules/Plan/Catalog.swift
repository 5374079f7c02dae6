/// What the rules compiler knows of the source database: its tables, their columns and keys.
///
/// A catalog is a plain value. The storage reads it from PostgreSQL; tests write it by hand.
package struct Catalog: Codable, Sendable, Equatable {
  /// Every table that rules could name.
  package var tables: [CatalogTable]

  package init(tables: [CatalogTable]) {
    self.tables = tables
  }

  /// The table of this schema and name, if there is one.
  package func table(schema: String, name: String) -> CatalogTable? {
    tables.first { $0.schema == schema && $0.name == name }
  }
}

/// One relation of the source database.
package struct CatalogTable: Codable, Sendable, Equatable {
  /// What sort of relation it is; only tables can be followed.
  package enum Kind: String, Codable, Sendable {
    case table
    case partitioned
    case view
    case materializedView
    case foreign
  }

  package var schema: String
  package var name: String
  package var kind: Kind
  /// The columns in their order in the table, dropped ones left out.
  package var columns: [CatalogColumn]
  /// The names of the columns that identify a row: the primary key, or the unique index of not-null
  /// columns that stands in for it. Empty when the table has neither.
  package var key: [String]
  /// The leaf partitions of a partitioned table.
  package var partitions: [CatalogRelationName]

  package init(
    schema: String, name: String, kind: Kind = .table, columns: [CatalogColumn], key: [String],
    partitions: [CatalogRelationName] = []
  ) {
    self.schema = schema
    self.name = name
    self.kind = kind
    self.columns = columns
    self.key = key
    self.partitions = partitions
  }

  /// The column of this name, if there is one.
  package func column(_ name: String) -> CatalogColumn? {
    columns.first { $0.name == name }
  }
}

/// A relation's schema and name.
package struct CatalogRelationName: Codable, Sendable, Hashable {
  package var schema: String
  package var name: String

  package init(schema: String, name: String) {
    self.schema = schema
    self.name = name
  }
}

/// One column of a table.
package struct CatalogColumn: Codable, Sendable, Hashable {
  package var name: String
  package var type: CatalogType
  package var notNull: Bool
  package var generated: Bool
  /// False for a column whose collation calls different texts equal.
  package var hasDeterministicCollation: Bool

  package init(
    name: String, type: CatalogType, notNull: Bool = false, generated: Bool = false,
    hasDeterministicCollation: Bool = true
  ) {
    self.name = name
    self.type = type
    self.notNull = notNull
    self.generated = generated
    self.hasDeterministicCollation = hasDeterministicCollation
  }
}

/// A PostgreSQL type, with the types it is made of.
package struct CatalogType: Codable, Sendable, Hashable {
  /// How the type is made.
  package indirect enum Kind: Codable, Sendable, Hashable {
    case base
    case enumeration
    case domain(CatalogType)
    case array(CatalogType)
    case composite([CatalogAttribute])
    case range(CatalogType)
    case multirange(CatalogType)
  }

  package var oid: UInt32
  package var schema: String
  /// The name in `pg_type`, such as `int4`, `bpchar` or `_text`.
  package var name: String
  package var kind: Kind

  package init(
    oid: UInt32 = 0, schema: String = "pg_catalog", name: String, kind: Kind = .base
  ) {
    self.oid = oid
    self.schema = schema
    self.name = name
    self.kind = kind
  }

  /// A built-in type by its `pg_type` name.
  package static func builtIn(_ name: String) -> CatalogType {
    CatalogType(name: name)
  }

  /// The type below any domains.
  package var base: CatalogType {
    if case .domain(let inner) = kind { return inner.base }
    return self
  }
}

/// One attribute of a composite type.
package struct CatalogAttribute: Codable, Sendable, Hashable {
  package var name: String
  package var type: CatalogType

  package init(name: String, type: CatalogType) {
    self.name = name
    self.type = type
  }
}
