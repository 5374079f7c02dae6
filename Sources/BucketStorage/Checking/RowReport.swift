/// Why a source row is, or is not, in the buckets of the definitions that read its table.
package struct RowReport: Sendable, Equatable, Encodable {
  package struct Value: Sendable, Equatable, Encodable {
    package let name: String
    /// JSON text.
    package let json: String
  }

  /// A condition of a query that the row does not fulfil.
  package struct Failure: Sendable, Equatable, Encodable {
    /// In the rules' language.
    package let condition: String
    /// The columns that it reads, as they are.
    package let values: [Value]
  }

  /// Whether a request may hold a bucket.
  package struct Access: Sendable, Equatable, Encodable {
    package let isGranted: Bool
    /// The steps that led there, or the first that leads elsewhere, for each way.
    package let reasons: [String]
  }

  /// Requests that may hold a bucket.
  package struct Holders: Sendable, Equatable, Encodable {
    /// What each of them brings.
    package let requests: [[Value]]
    /// What each of them must fulfil besides.
    package let conditions: [String]
    /// Whether there are more than are listed.
    package let hasMore: Bool
  }

  package struct Bucket: Sendable, Equatable, Encodable {
    package let name: String
    /// The values of its parameters, a JSON array.
    package let key: String
    /// Whether the row, as it is now, belongs to it.
    package let isGiven: Bool
    /// Whether the last tick has it there.
    package let isStored: Bool
    /// For a question about one request.
    package var access: Access?
    /// Who has it; nil when the request has it.
    package var holders: [Holders]?
  }

  /// One query that reads the row's table.
  package struct Way: Sendable, Equatable, Encodable {
    package let definition: String
    package let stream: String?
    /// Its place among the definition's queries, from 1.
    package let query: Int
    /// The replicas' table that its rows go to.
    package let output: String
    package var buckets: [Bucket] = []
    /// For each alternative of the query's condition under which the row does not belong anywhere.
    package var failures: [[Failure]] = []

    package init(definition: String, stream: String?, query: Int, output: String) {
      self.definition = definition
      self.stream = stream
      self.query = query
      self.output = output
    }
  }

  /// With its schema.
  package let table: String
  /// The texts of the key's columns, parted by commas.
  package let key: String
  package let tick: Int64
  /// Whether the source has the row.
  package let exists: Bool
  /// Whether it was changed since the last tick.
  package var isPending = false
  package var ways: [Way] = []

  init(table: String, key: String, tick: Tick, exists: Bool) {
    self.table = table
    self.key = key
    self.tick = tick.number
    self.exists = exists
  }

  /// Whether the request may hold the row as it is now; false for a question about all.
  package var isHeld: Bool {
    ways.contains { way in
      way.buckets.contains { $0.isGiven && $0.access?.isGranted == true }
    }
  }
}
