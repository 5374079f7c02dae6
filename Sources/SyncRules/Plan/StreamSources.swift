/// A table that a stream's query reads.
struct StreamTable {
  var name: TableName
  var alias: Identifier?
  /// The table of this pass: a wildcard stands for one after the other.
  var resolved: ResolvedTable
  /// How many tables the name stands for.
  var candidates: Int

  /// The name of its rows' table on clients.
  var outputName: String { alias?.name ?? resolved.name }
}

/// A `json_each` of a stream's query, or the JSON value right of an IN.
struct StreamElements {
  var value: TypedScalar
  /// Where the value comes from; a constant counts as the request's.
  var home: ValueHome { value.homes.first ?? .request }
}

/// What a name in front of a column stands for.
struct StreamName {
  enum Meaning {
    case table(Int)
    case elements(Int)
    /// A subquery in FROM, or a query of `with`: its columns.
    case columns([StreamColumn])
  }

  var name: String
  var meaning: Meaning
}

/// A column of a subquery.
struct StreamColumn {
  var name: String
  var value: TypedScalar
}

/// A stream's query with its names resolved, its values typed, and everything that it joins listed.
struct BoundQuery {
  var tables: [StreamTable]
  var elements: [StreamElements]
  var condition: StreamCondition
  /// The table whose rows the stream holds.
  var primary: Int
  var columns: [PlanQuery.Column]
}
