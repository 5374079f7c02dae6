/// One source in FROM, in textual order, with the join that ties it to those before it.
package struct FromItem: Sendable, Hashable {
  package indirect enum Source: Sendable, Hashable {
    case table(TableName)
    case function(FunctionCall)
    case subquery(SelectStatement)
  }

  package enum JoinKind: String, Sendable {
    case inner
    case left
    case right
    case full
    case cross
    case natural
  }

  /// `[kind] JOIN source [ON condition | USING (columns)]`
  package struct Join: Sendable, Hashable {
    package var kind: JoinKind
    package var condition: Expression?
    package var using: [Identifier]
    /// The join's own words, for messages.
    package var keywords: SourceSpan

    package init(
      kind: JoinKind, condition: Expression?, using: [Identifier], keywords: SourceSpan
    ) {
      self.kind = kind
      self.condition = condition
      self.using = using
      self.keywords = keywords
    }
  }

  package var source: Source
  package var alias: Identifier?
  /// `AS s (c1, c2)`
  package var columnAliases: [Identifier]
  /// `nil` for the first source and those after a comma.
  package var join: Join?
  package var span: SourceSpan

  package init(
    source: Source, alias: Identifier?, columnAliases: [Identifier], join: Join?, span: SourceSpan
  ) {
    self.source = source
    self.alias = alias
    self.columnAliases = columnAliases
    self.join = join
    self.span = span
  }
}

/// `name`, `schema.name` or `"connection.schema".name`; a trailing `%` in a quoted part is a
/// wildcard.
package struct TableName: Sendable, Hashable {
  package var schema: Identifier?
  package var name: Identifier
  package var span: SourceSpan

  package init(schema: Identifier?, name: Identifier, span: SourceSpan) {
    self.schema = schema
    self.name = name
    self.span = span
  }

  /// The schema without its connection tag; `nil` if the text names none.
  package var schemaName: String? {
    schema.map {
      String($0.name.split(separator: ".", omittingEmptySubsequences: false).last ?? "")
    }
  }

  /// The connection tag in front of the schema.
  package var connectionTag: String? {
    guard let parts = schema?.name.split(separator: ".", omittingEmptySubsequences: false),
      parts.count > 1
    else { return nil }
    return String(parts[0])
  }

  /// Whether the table's name is a pattern for all tables with its prefix.
  package var isWildcard: Bool { name.isQuoted && name.name.hasSuffix("%") }

  /// Whether the schema is a pattern for all schemas with its prefix.
  package var isSchemaWildcard: Bool {
    guard let schema else { return false }
    return schema.isQuoted && schema.name.hasSuffix("%")
  }
}
