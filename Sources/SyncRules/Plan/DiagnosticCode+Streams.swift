extension DiagnosticCode {
  // Findings about the meaning of streams.
  package static let ambiguousColumn = DiagnosticCode(rawValue: "RULES_AMBIGUOUS_COLUMN")
  package static let alphaStream = DiagnosticCode(rawValue: "RULES_STREAM2")
  package static let crossTable = DiagnosticCode(rawValue: "RULES_CROSS_TABLE")
  package static let duplicateAlias = DiagnosticCode(rawValue: "RULES_DUP_ALIAS")
  package static let elementsInput = DiagnosticCode(rawValue: "RULES_TVF_INPUT")
  package static let oneOutputTable = DiagnosticCode(rawValue: "RULES_ONE_OUTPUT_TABLE")
  package static let subqueryColumns = DiagnosticCode(rawValue: "RULES_SUBQ_COLUMNS")
  package static let tooManyTerms = DiagnosticCode(rawValue: "RULES_TOO_MANY_TERMS")
  package static let unknownTable = DiagnosticCode(rawValue: "RULES_UNKNOWN_TABLE")
  package static let warnAlias = DiagnosticCode(rawValue: "RULES_W_ALIAS")
  package static let warnAutoParams = DiagnosticCode(rawValue: "RULES_W_AUTO_PARAMS")
  package static let warnJoinAlias = DiagnosticCode(rawValue: "RULES_W_JOIN_ALIAS")
  package static let warnShadow = DiagnosticCode(rawValue: "RULES_W_SHADOW")
  package static let warnStarOrder = DiagnosticCode(rawValue: "RULES_W_STAR_ORDER")
  package static let warnSuffix = DiagnosticCode(rawValue: "RULES_W_SUFFIX")
  package static let warnUnusedQuery = DiagnosticCode(rawValue: "RULES_W_UNUSED_CTE")
}
