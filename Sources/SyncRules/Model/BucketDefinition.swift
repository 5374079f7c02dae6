/// One entry of `bucket_definitions`.
package struct BucketDefinition: Sendable {
  /// The priority of buckets for which the rules state none.
  package static let defaultPriority = 3

  package var name: String
  package var nameSpan: SourceSpan
  /// The `priority` key; `nil` if absent.
  package var priority: Located<Int>?
  /// `nil` if the key is absent: one bucket without parameters. Never partial: queries with errors
  /// stay in the list without a `select`.
  package var parameters: [RuleQuery]?
  package var data: [RuleQuery]
  package var acceptsDangerousQueries: Bool

  package init(
    name: String, nameSpan: SourceSpan, priority: Located<Int>?, parameters: [RuleQuery]?,
    data: [RuleQuery], acceptsDangerousQueries: Bool
  ) {
    self.name = name
    self.nameSpan = nameSpan
    self.priority = priority
    self.parameters = parameters
    self.data = data
    self.acceptsDangerousQueries = acceptsDangerousQueries
  }
}
