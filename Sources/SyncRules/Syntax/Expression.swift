/// A scalar or boolean expression with the span of its text.
package struct Expression: Sendable, Hashable {
  package indirect enum Kind: Sendable, Hashable {
    case null
    case boolean(Bool)
    /// The digits as written, a sign in front; may be larger than 64 bits.
    case integer(String)
    /// The digits as written, a sign in front; there are no exponents.
    case real(String)
    case string(String)
    case column(ColumnReference)
    case call(FunctionCall)
    case unary(UnaryOperator, Expression)
    case binary(BinaryOperator, Expression, Expression)
    /// `operand IS [NOT] test`
    case isTest(Expression, IsTest, negated: Bool)
    /// `operand [NOT] BETWEEN low AND high`
    case between(Expression, low: Expression, high: Expression, negated: Bool)
    /// `operand [NOT] IN set`
    case membership(Expression, MembershipSet, negated: Bool)
    /// `CASE [operand] WHEN … THEN … [ELSE …] END`
    case conditional(operand: Expression?, branches: [CaseBranch], otherwise: Expression?)
    /// `CAST(operand AS type)` and `operand::type`
    case cast(Expression, CastType)
    /// `operand -> member` (JSON text), or `operand ->> member` (SQL value) if `asValue`
    case member(Expression, JSONMember, asValue: Bool)
    /// `ARRAY[…]`
    case array([Expression])
    /// `ROW(…)`
    case row([Expression])
    /// `interval 'text'`, beside `now()`
    case interval(String)
    /// `(SELECT …)` where a value stands or beside `&&`
    case subquery(SelectStatement)
  }

  package let kind: Kind
  package let span: SourceSpan
  /// The number of levels of the tree; the parser limits it, so recursion over the tree is safe.
  package let depth: Int

  package init(_ kind: Kind, span: SourceSpan) {
    self.kind = kind
    self.span = span
    depth = 1 + (Self.children(of: kind).map(\.depth).max() ?? 0)
  }
}

package enum UnaryOperator: String, Sendable {
  case not = "NOT"
  case plus = "+"
  case minus = "-"
}

package enum BinaryOperator: String, Sendable {
  case or = "OR"
  case and = "AND"
  case equal = "="
  case notEqual = "!="
  case less = "<"
  case lessOrEqual = "<="
  case greater = ">"
  case greaterOrEqual = ">="
  case add = "+"
  case subtract = "-"
  case multiply = "*"
  case divide = "/"
  case modulo = "%"
  case concatenate = "||"
  case bitAnd = "&"
  case bitOr = "|"
  case shiftLeft = "<<"
  case shiftRight = ">>"
  /// Two arrays have an element in common (streams).
  case overlap = "&&"
}

package enum IsTest: String, Sendable {
  case null = "NULL"
  case yes = "TRUE"
  case no = "FALSE"
}

/// The right side of IN.
package enum MembershipSet: Sendable, Hashable {
  /// `IN expression`, `IN (expression)`, `IN ARRAY[…]`, `IN ROW(…)`, or a CTE's name as a column.
  case expression(Expression)
  /// `IN (a, b)`: two or more items.
  case list([Expression], SourceSpan)
  case subquery(SelectStatement)
}

package struct CaseBranch: Sendable, Hashable {
  package var condition: Expression
  package var result: Expression

  package init(condition: Expression, result: Expression) {
    self.condition = condition
    self.result = result
  }
}

/// The five types a value can be cast to.
package enum CastType: String, Sendable, CaseIterable, Codable {
  case text
  case numeric
  case integer
  case real
  case blob
}

/// The right side of `->` and `->>`.
package enum JSONMember: Sendable, Hashable {
  case key(String)
  case index(Int)
}

/// `column` or `qualifier.column`, also `bucket.p` and `token_parameters.x`.
package struct ColumnReference: Sendable, Hashable {
  package var qualifier: Identifier?
  package var name: Identifier

  package init(qualifier: Identifier?, name: Identifier) {
    self.qualifier = qualifier
    self.name = name
  }
}

/// `name(…)` or `qualifier.name(…)`, such as `request.jwt()` and `t.table_suffix()`.
package struct FunctionCall: Sendable, Hashable {
  package var qualifier: Identifier?
  package var name: Identifier
  package var arguments: [Expression]
  package var span: SourceSpan

  package init(
    qualifier: Identifier?, name: Identifier, arguments: [Expression], span: SourceSpan
  ) {
    self.qualifier = qualifier
    self.name = name
    self.arguments = arguments
    self.span = span
  }

  /// The name as messages show it: `request.jwt`.
  package var displayName: String {
    qualifier.map { "\($0.name).\(name.name)" } ?? name.name
  }
}

extension Expression {
  /// The expressions directly below this one; subqueries are not entered.
  package var children: [Expression] { Self.children(of: kind) }

  private static func children(of kind: Kind) -> [Expression] {
    switch kind {
    case .null, .boolean, .integer, .real, .string, .column, .interval, .subquery: []
    case .call(let call): call.arguments
    case .unary(_, let operand), .isTest(let operand, _, negated: _), .cast(let operand, _),
      .member(let operand, _, asValue: _):
      [operand]
    case .binary(_, let left, let right): [left, right]
    case .between(let operand, let low, let high, negated: _): [operand, low, high]
    case .membership(let operand, .expression(let set), negated: _): [operand, set]
    case .membership(let operand, .list(let items, _), negated: _): [operand] + items
    case .membership(let operand, .subquery, negated: _): [operand]
    case .conditional(let operand, let branches, let otherwise):
      (operand.map { [$0] } ?? []) + branches.flatMap { [$0.condition, $0.result] }
        + (otherwise.map { [$0] } ?? [])
    case .array(let items), .row(let items): items
    }
  }
}
