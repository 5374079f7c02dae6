/// The stable name of a kind of finding, such as `RULES_UNKNOWN_KEY`.
///
/// `rules/errors.md` has a paragraph for each. Codes beginning with `RULES_W_` are warnings.
package struct DiagnosticCode: RawRepresentable, Sendable, Hashable, Codable {
  package let rawValue: String

  package init(rawValue: String) {
    self.rawValue = rawValue
  }
}

extension DiagnosticCode {
  // Findings about the YAML level.
  package static let badEdition = DiagnosticCode(rawValue: "RULES_BAD_EDITION")
  package static let badOption = DiagnosticCode(rawValue: "RULES_BAD_OPTION")
  package static let badPriority = DiagnosticCode(rawValue: "RULES_BAD_PRIORITY")
  package static let bucketsNotInEdition3 =
    DiagnosticCode(rawValue: "RULES_BUCKETS_NOT_IN_EDITION_3")
  package static let duplicateName = DiagnosticCode(rawValue: "RULES_DUPLICATE_NAME")
  package static let missingDefinitions = DiagnosticCode(rawValue: "RULES_MISSING_DEFINITIONS")
  package static let missingKey = DiagnosticCode(rawValue: "RULES_MISSING_KEY")
  package static let needsEdition3 = DiagnosticCode(rawValue: "RULES_NEEDS_EDITION_3")
  package static let queryXorQueries = DiagnosticCode(rawValue: "RULES_QUERY_XOR_QUERIES")
  package static let streamsNeedEdition = DiagnosticCode(rawValue: "RULES_STREAMS_NEED_EDITION")
  package static let unknownKey = DiagnosticCode(rawValue: "RULES_UNKNOWN_KEY")
  package static let warnAlpha = DiagnosticCode(rawValue: "RULES_W_ALPHA")
  package static let warnStorage = DiagnosticCode(rawValue: "RULES_W_STORAGE")
  package static let yamlShape = DiagnosticCode(rawValue: "RULES_YAML_SHAPE")
  package static let yamlSyntax = DiagnosticCode(rawValue: "RULES_YAML_SYNTAX")
}

extension DiagnosticCode {
  // Findings about the shape of the SQL.
  package static let arity = DiagnosticCode(rawValue: "RULES_ARITY")
  package static let badSchema = DiagnosticCode(rawValue: "RULES_BAD_SCHEMA")
  package static let castType = DiagnosticCode(rawValue: "RULES_CAST")
  package static let clause = DiagnosticCode(rawValue: "RULES_CLAUSE")
  package static let jsonMember = DiagnosticCode(rawValue: "RULES_JSON_MEMBER")
  package static let now = DiagnosticCode(rawValue: "RULES_NOW")
  package static let nondeterministic = DiagnosticCode(rawValue: "RULES_NONDETERMINISTIC")
  package static let oneSelect = DiagnosticCode(rawValue: "RULES_ONE_SELECT")
  package static let onlySelect = DiagnosticCode(rawValue: "RULES_ONLY_SELECT")
  package static let unsupportedOperator = DiagnosticCode(rawValue: "RULES_OPERATOR")
  package static let singleTable = DiagnosticCode(rawValue: "RULES_SINGLE_TABLE")
  package static let sqlSyntax = DiagnosticCode(rawValue: "RULES_SQL_SYNTAX")
  package static let star = DiagnosticCode(rawValue: "RULES_STAR")
  package static let subqueryPosition = DiagnosticCode(rawValue: "RULES_SUBQUERY_POSITION")
  package static let tooDeep = DiagnosticCode(rawValue: "RULES_TOO_DEEP")
  package static let unknownFunction = DiagnosticCode(rawValue: "RULES_UNKNOWN_FUNCTION")
  package static let unknownRef = DiagnosticCode(rawValue: "RULES_UNKNOWN_REF")
  package static let warnCase = DiagnosticCode(rawValue: "RULES_W_CASE")
  package static let warnColumn = DiagnosticCode(rawValue: "RULES_W_COLUMN")
  package static let warnTable = DiagnosticCode(rawValue: "RULES_W_TABLE")
}

extension DiagnosticCode {
  // Findings about bucket definitions.
  package static let aliasRequired = DiagnosticCode(rawValue: "RULES_ALIAS_REQUIRED")
  package static let bothSidesParam = DiagnosticCode(rawValue: "RULES_BOTH_SIDES_PARAM")
  package static let matchPosition = DiagnosticCode(rawValue: "RULES_MATCH_POSITION")
  package static let missingID = DiagnosticCode(rawValue: "RULES_MISSING_ID")
  package static let mixedClause = DiagnosticCode(rawValue: "RULES_MIXED_CLAUSE")
  package static let orParams = DiagnosticCode(rawValue: "RULES_OR_PARAMS")
  package static let paramCoverage = DiagnosticCode(rawValue: "RULES_PARAM_COVERAGE")
  package static let paramInRight = DiagnosticCode(rawValue: "RULES_PARAM_IN_RIGHT")
  package static let paramOperator = DiagnosticCode(rawValue: "RULES_PARAM_OPERATOR")
  package static let paramRowExpr = DiagnosticCode(rawValue: "RULES_PARAM_ROW_EXPR")
  package static let paramSetsDiffer = DiagnosticCode(rawValue: "RULES_PARAM_SETS_DIFFER")
  package static let paramTableAlias = DiagnosticCode(rawValue: "RULES_PARAM_TABLE_ALIAS")
  package static let requestInData = DiagnosticCode(rawValue: "RULES_REQUEST_IN_DATA")
  package static let twoArrays = DiagnosticCode(rawValue: "RULES_TWO_ARRAYS")
  package static let twoIn = DiagnosticCode(rawValue: "RULES_TWO_IN")
  package static let unknownTVF = DiagnosticCode(rawValue: "RULES_UNKNOWN_TVF")
  package static let warnDangerous = DiagnosticCode(rawValue: "RULES_W_DANGEROUS")
}

extension DiagnosticCode {
  // Findings about streams.
  package static let inList = DiagnosticCode(rawValue: "RULES_IN_LIST")
  package static let joinKind = DiagnosticCode(rawValue: "RULES_JOIN_KIND")
  package static let metadata = DiagnosticCode(rawValue: "RULES_METADATA")
}
