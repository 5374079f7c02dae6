/// `SELECT columns [FROM items] [WHERE condition]`: the one statement of the rules language.
///
/// Clauses that no dialect accepts (`LIMIT`, `ORDER BY`, …) are reported by the parser and are not
/// part of the tree.
package struct SelectStatement: Sendable, Hashable {
  /// The word `DISTINCT`; only edition 3 accepts it, without effect.
  package var distinct: SourceSpan?
  /// Empty for `SELECT` and `SELECT WHERE …`.
  package var columns: [ResultColumn]
  package var from: [FromItem]
  package var condition: Expression?
  package var span: SourceSpan

  package init(
    distinct: SourceSpan?, columns: [ResultColumn], from: [FromItem], condition: Expression?,
    span: SourceSpan
  ) {
    self.distinct = distinct
    self.columns = columns
    self.from = from
    self.condition = condition
    self.span = span
  }
}

/// One item of the SELECT list.
package struct ResultColumn: Sendable, Hashable {
  package enum Value: Sendable, Hashable {
    /// `*`
    case star
    /// `t.*`
    case qualifiedStar(Identifier)
    case expression(Expression)
  }

  package var value: Value
  package var alias: Identifier?
  /// The text of the value without the alias, as written.
  package var sourceText: String
  package var span: SourceSpan

  package init(value: Value, alias: Identifier?, sourceText: String, span: SourceSpan) {
    self.value = value
    self.alias = alias
    self.sourceText = sourceText
    self.span = span
  }

  /// The alias, or the column's name for a plain column; `nil` for stars and other expressions.
  package var outputName: Identifier? {
    if let alias { return alias }
    guard case .expression(let expression) = value, case .column(let column) = expression.kind
    else { return nil }
    return column.name
  }
}
