/// A rules file with every name resolved and every type known: what is to be computed, not how.
package struct SyncPlan: Codable, Sendable, Equatable {
  /// Rises with every change of what a plan's values mean.
  package static let currentVersion = 1

  package var version: Int
  /// The source tables that any query reads.
  package var sources: [PlanSource]
  package var definitions: [PlanDefinition]

  package init(
    version: Int = SyncPlan.currentVersion, sources: [PlanSource], definitions: [PlanDefinition]
  ) {
    self.version = version
    self.sources = sources
    self.definitions = definitions
  }
}

/// A source table and the columns that identify its rows.
package struct PlanSource: Codable, Sendable, Hashable {
  package var schema: String
  package var name: String
  package var key: [PlanKeyColumn]

  package init(schema: String, name: String, key: [PlanKeyColumn]) {
    self.schema = schema
    self.name = name
    self.key = key
  }
}

/// One definition: what its requests are granted and which rows its buckets hold.
package struct PlanDefinition: Codable, Sendable, Equatable {
  package var name: String
  package var priority: Int
  /// The bucket parameters in the order of bucket names.
  package var parameters: [String]
  package var queries: [PlanQuery]
  package var lookups: [PlanLookup]
  package var grants: [PlanGrant]

  package init(
    name: String, priority: Int, parameters: [String], queries: [PlanQuery],
    lookups: [PlanLookup], grants: [PlanGrant]
  ) {
    self.name = name
    self.priority = priority
    self.parameters = parameters
    self.queries = queries
    self.lookups = lookups
    self.grants = grants
  }
}

/// One way for a row to match: a part for each key place, and conditions on the row.
package struct PlanBranch: Codable, Sendable, Equatable {
  package struct Part: Codable, Sendable, Hashable {
    package var value: PlanExpression
    /// True when the value is a JSON array and each element matches.
    package var expands: Bool

    package init(value: PlanExpression, expands: Bool) {
      self.value = value
      self.expands = expands
    }
  }

  /// For each key place the values that must all be equal there; usually one.
  package var parts: [[Part]]
  /// Conditions that must be true.
  package var conditions: [PlanExpression]

  package init(parts: [[Part]], conditions: [PlanExpression]) {
    self.parts = parts
    self.conditions = conditions
  }
}

/// A data query over one source table.
package struct PlanQuery: Codable, Sendable, Equatable {
  package struct Column: Codable, Sendable, Equatable {
    package var name: String
    package var value: PlanExpression

    package init(name: String, value: PlanExpression) {
      self.name = name
      self.value = value
    }
  }

  /// Index into `SyncPlan.sources`.
  package var source: Int
  package var outputName: String
  package var columns: [Column]
  package var branches: [PlanBranch]

  package init(source: Int, outputName: String, columns: [Column], branches: [PlanBranch]) {
    self.source = source
    self.outputName = outputName
    self.columns = columns
    self.branches = branches
  }

  /// The value that identifies a row on the wire.
  package var objectID: PlanExpression {
    columns.first { $0.name == "id" }?.value ?? .null
  }
}

/// The rows of a parameter query's table, by the values that requests match.
package struct PlanLookup: Codable, Sendable, Equatable {
  /// Index into `SyncPlan.sources`.
  package var source: Int
  package var branches: [PlanBranch]
  package var values: [PlanExpression]

  package init(source: Int, branches: [PlanBranch], values: [PlanExpression]) {
    self.source = source
    self.branches = branches
    self.values = values
  }
}

/// A parameter query as a request sees it.
package struct PlanGrant: Codable, Sendable, Equatable {
  /// Where the value of a bucket parameter comes from.
  package enum Output: Codable, Sendable, Equatable {
    case request(PlanExpression)
    /// The value at this place of the lookup's values.
    case lookup(Int)
  }

  /// The priority of its buckets.
  package var priority: Int
  /// Conditions on the request that must be true.
  package var conditions: [PlanExpression]
  /// The array whose elements each give a bucket.
  package var elements: PlanExpression?
  /// Index into the definition's lookups.
  package var lookup: Int?
  /// The request's side of the lookup's key.
  package var key: [PlanBranch.Part]
  /// For each bucket parameter, in the definition's order.
  package var outputs: [Output]

  package init(
    priority: Int, conditions: [PlanExpression], elements: PlanExpression? = nil,
    lookup: Int? = nil, key: [PlanBranch.Part] = [], outputs: [Output]
  ) {
    self.priority = priority
    self.conditions = conditions
    self.elements = elements
    self.lookup = lookup
    self.key = key
    self.outputs = outputs
  }
}
