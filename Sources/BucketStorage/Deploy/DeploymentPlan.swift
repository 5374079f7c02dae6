/// What a deployment would change, and for how much data.
package struct DeploymentPlan: Sendable, Equatable {
  package enum Change: String, Sendable, Equatable {
    /// Keeps its buckets, its ids and its clients' positions.
    case unchanged
    /// Built anew beside the old one; its buckets start over on clients at the switch.
    case changed
    case added
    /// Its buckets go away on clients at the switch.
    case removed
  }

  package struct Definition: Sendable, Equatable {
    package let name: String
    package let change: Change
    /// Buckets that it has now.
    package let buckets: Int64
    /// Rows that these hold now.
    package let rows: Int64
    /// Source rows that have to be read to build it, as the server estimates them.
    package let rowsToRead: Int64
  }

  package struct Table: Sendable, Equatable {
    package let schema: String
    package let name: String
    /// Whether it gets capture triggers by this deployment.
    package let isNew: Bool
  }

  package let definitions: [Definition]
  package let tables: [Table]

  /// Whether every definition is as it was, and none is missing.
  package var changesNothing: Bool { definitions.allSatisfy { $0.change == .unchanged } }
}

/// How far a deployment has got.
package struct DeploymentProgress: Sendable, Equatable {
  package enum Stage: String, Sendable, Equatable {
    /// Capture triggers are being made.
    case capturing
    /// New definitions are being built, while the old ones serve.
    case building
    /// The new rules are in force.
    case active
  }

  package let stage: Stage
  package let generation: Int64?
  package let rowsRead: Int64
  /// As the server estimates it.
  package let rowsToRead: Int64
}
