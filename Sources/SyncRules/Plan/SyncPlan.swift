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
  /// The stream that the definition is a part of; nil for a bucket definition.
  package var stream: PlanStream?
  package var priority: Int
  /// The bucket parameters in the order of bucket names.
  package var parameters: [String]
  package var queries: [PlanQuery]
  package var lookups: [PlanLookup]
  package var grants: [PlanGrant]

  package init(
    name: String, stream: PlanStream? = nil, priority: Int, parameters: [String],
    queries: [PlanQuery], lookups: [PlanLookup], grants: [PlanGrant]
  ) {
    self.name = name
    self.stream = stream
    self.priority = priority
    self.parameters = parameters
    self.queries = queries
    self.lookups = lookups
    self.grants = grants
  }
}

/// A stream as subscriptions see it.
package struct PlanStream: Codable, Sendable, Equatable {
  package var name: String
  /// Whether clients have it without asking (`auto_subscribe`).
  package var isDefault: Bool

  package init(name: String, isDefault: Bool) {
    self.name = name
    self.isDefault = isDefault
  }
}

/// A JSON value of which each element counts.
package struct PlanElements: Codable, Sendable, Hashable {
  package var value: PlanExpression
  /// True for `json_each`: an object has its members as elements. False where only an array will do.
  package var takesObjects: Bool

  package init(_ value: PlanExpression, takesObjects: Bool = false) {
    self.value = value
    self.takesObjects = takesObjects
  }
}

/// One way for a row to match: values for each key place, and conditions on the row.
package struct PlanBranch: Codable, Sendable, Equatable {
  /// Values of the row whose elements, each with each, are looked at one at a time.
  package var elements: [PlanElements]
  /// For each key place the values that must all be equal there; usually one.
  package var parts: [[PlanExpression]]
  /// Conditions that must be true.
  package var conditions: [PlanExpression]

  package init(
    elements: [PlanElements] = [], parts: [[PlanExpression]], conditions: [PlanExpression]
  ) {
    self.elements = elements
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

/// One way for a request to reach buckets: steps from the request outward, each over what those before
/// it found, and what the last of them comes to.
package struct PlanGrant: Codable, Sendable, Equatable {
  package enum Step: Codable, Sendable, Equatable {
    /// Each element of a value of the request.
    case elements(PlanElements)
    /// Each row of the definition's lookup at this place that stands under the key.
    case lookup(Int, key: [PlanExpression])
  }

  /// The priority of its buckets.
  package var priority: Int
  /// Conditions on the request, and on what the steps found, that must be true.
  package var conditions: [PlanExpression]
  package var steps: [Step]
  /// For each bucket parameter, in the definition's order, the values that must all be equal; usually one.
  package var outputs: [[PlanExpression]]

  package init(
    priority: Int, conditions: [PlanExpression], steps: [Step] = [],
    outputs: [[PlanExpression]]
  ) {
    self.priority = priority
    self.conditions = conditions
    self.steps = steps
    self.outputs = outputs
  }
}
