/// One entry of `streams`.
package struct StreamDefinition: Sendable {
  package var name: String
  package var nameSpan: SourceSpan
  /// The `priority` key; `nil` if absent.
  package var priority: Located<Int>?
  /// The stream's own `with` queries; they hide the root's of the same name.
  package var namedQueries: [NamedQuery]
  package var queries: [RuleQuery]
  /// Whether clients that name no streams get this one.
  package var autoSubscribe: Bool
  package var acceptsDangerousQueries: Bool

  package init(
    name: String, nameSpan: SourceSpan, priority: Located<Int>?, namedQueries: [NamedQuery],
    queries: [RuleQuery], autoSubscribe: Bool, acceptsDangerousQueries: Bool
  ) {
    self.name = name
    self.nameSpan = nameSpan
    self.priority = priority
    self.namedQueries = namedQueries
    self.queries = queries
    self.autoSubscribe = autoSubscribe
    self.acceptsDangerousQueries = acceptsDangerousQueries
  }
}
