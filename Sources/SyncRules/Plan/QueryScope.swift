/// What names mean inside one query of a bucket definition.
struct QueryScope {
  enum Dialect {
    /// A data query; the definition's parameters, or nil when they are not known because a
    /// parameter query has errors.
    case data(parameters: [String]?)
    case parameters
  }

  var dialect: Dialect
  var options: RuleOptions
  /// The only valid qualifier of columns, if the query reads a table.
  var qualifier: String?
  /// The table as the catalog has it; nil without a catalog and for a table it lacks.
  var table: CatalogTable?
  /// The part of the table's name that a wildcard stands for.
  var suffix: String?
  /// The qualifiers of `key` and `value`, if the query reads `json_each`.
  var elementQualifiers: [String] = []

  var readsElements: Bool { !elementQualifiers.isEmpty }
}

/// Where a value comes from.
enum ValueHome: Hashable {
  case request
  /// The row of a source, by its number in the query.
  case source(Int)
}

/// A scalar expression with what it depends on.
struct TypedScalar {
  var expression: PlanExpression
  /// Where its values come from: none for a constant, never more than one.
  var homes: Set<ValueHome> = []
  /// The `json_each` of a stream's query that take part.
  var elements: Set<Int> = []
  /// A value that the token's issuer vouches for takes part.
  var isAuthenticated = false
  /// A value that the client may choose takes part.
  var isClientChosen = false
  /// A column that the table does not have.
  var isMissingColumn = false
  /// The column, as the catalog has it, that stands alone.
  var column: CatalogColumn?

  static func authenticated(_ expression: PlanExpression) -> TypedScalar {
    TypedScalar(expression: expression, homes: [.request], isAuthenticated: true)
  }

  static func clientChosen(_ expression: PlanExpression) -> TypedScalar {
    TypedScalar(expression: expression, homes: [.request], isClientChosen: true)
  }

  var usesRequest: Bool { homes.contains(.request) }
  var usesRow: Bool { homes.contains { $0 != .request } }

  /// Whether a column of the row stands alone.
  var isPlainColumn: Bool {
    if case .column = expression { return true }
    return isMissingColumn
  }

  func with(_ expression: PlanExpression) -> TypedScalar {
    var copy = self
    copy.expression = expression
    copy.isMissingColumn = false
    copy.column = nil
    return copy
  }

  /// NULL with what either depends on.
  func joined(with other: TypedScalar) -> TypedScalar {
    TypedScalar(
      expression: .null, homes: homes.union(other.homes), elements: elements.union(other.elements),
      isAuthenticated: isAuthenticated || other.isAuthenticated,
      isClientChosen: isClientChosen || other.isClientChosen)
  }
}

/// One place of a key: what a match is made on.
enum MatchSlot: Hashable {
  case bucketParameter(String)
  case request(PlanExpression, expands: Bool)
}

/// One conjunction of matches and conditions.
struct MatchBranch {
  struct Part {
    var slot: MatchSlot
    /// The row's side.
    var value: PlanExpression
    /// True when the value is a JSON array and each element matches.
    var expands = false
    var isAuthenticated = false
  }

  var parts: [Part] = []
  /// Conditions on the request.
  var gates: [TypedScalar] = []
  /// Conditions on the row.
  var filters: [PlanExpression] = []

  /// The row's side, with the parts of one place together.
  func planned(places: [[Part]], conditions: [PlanExpression]) -> PlanBranch {
    var elements: [PlanElements] = []
    let parts = places.map { place in
      place.map { part -> PlanExpression in
        guard part.expands else { return part.value }
        elements.append(PlanElements(part.value))
        return .elementValue(elements.count - 1)
      }
    }
    return PlanBranch(elements: elements, parts: parts, conditions: conditions)
  }
}

/// What an expression of a WHERE clause is.
enum Clause {
  case scalar(TypedScalar)
  case match([MatchBranch])
  /// `bucket.p` standing alone.
  case bucketParameter(String)
}
