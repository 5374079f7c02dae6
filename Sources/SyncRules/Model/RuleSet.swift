/// A rules file as read: its options and definitions, with the parsed queries.
///
/// Queries that could not be parsed, or whose shape the file's edition refuses, have no `select`;
/// what is wrong with them is among the diagnostics, so later stages pass over them in silence.
package struct RuleSet: Sendable {
  package var file: SourceFile
  /// 1, 2 or 3.
  package var edition: Int
  package var options: RuleOptions
  package var bucketDefinitions: [BucketDefinition]
  package var streams: [StreamDefinition]
  /// The root's `with` queries (edition 3).
  package var sharedQueries: [NamedQuery]
  package var events: [EventDefinition]

  package init(
    file: SourceFile, edition: Int, options: RuleOptions, bucketDefinitions: [BucketDefinition],
    streams: [StreamDefinition], sharedQueries: [NamedQuery], events: [EventDefinition]
  ) {
    self.file = file
    self.edition = edition
    self.options = options
    self.bucketDefinitions = bucketDefinitions
    self.streams = streams
    self.sharedQueries = sharedQueries
    self.events = events
  }
}

/// One SQL text of the file.
package struct RuleQuery: Sendable {
  /// The SQL after YAML's escapes and folding.
  package var text: String
  /// The YAML scalar.
  package var span: SourceSpan
  /// `nil` if the query has errors.
  package var select: SelectStatement?

  package init(text: String, span: SourceSpan, select: SelectStatement?) {
    self.text = text
    self.span = span
    self.select = select
  }
}

/// A query with a name: one entry of `with`.
package struct NamedQuery: Sendable {
  package var name: String
  package var nameSpan: SourceSpan
  package var query: RuleQuery

  package init(name: String, nameSpan: SourceSpan, query: RuleQuery) {
    self.name = name
    self.nameSpan = nameSpan
    self.query = query
  }
}

/// One entry of `event_definitions`.
package struct EventDefinition: Sendable {
  package var name: String
  package var nameSpan: SourceSpan
  package var payloads: [RuleQuery]

  package init(name: String, nameSpan: SourceSpan, payloads: [RuleQuery]) {
    self.name = name
    self.nameSpan = nameSpan
    self.payloads = payloads
  }
}

/// A value the file states, with its place.
package struct Located<Value: Sendable>: Sendable {
  package var value: Value
  package var span: SourceSpan

  package init(_ value: Value, span: SourceSpan) {
    self.value = value
    self.span = span
  }
}
