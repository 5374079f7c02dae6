extension DiagnosticCode {
  // Findings of the stage that knows the source database.
  package static let blobMixed = DiagnosticCode(rawValue: "RULES_BLOB_MIXED")
  package static let dynamicArgument = DiagnosticCode(rawValue: "RULES_DYNAMIC_ARGUMENT")
  package static let keyType = DiagnosticCode(rawValue: "RULES_KEY_TYPE")
  package static let noKey = DiagnosticCode(rawValue: "RULES_NO_KEY")
  package static let notATable = DiagnosticCode(rawValue: "RULES_NOT_A_TABLE")
  package static let notCompiled = DiagnosticCode(rawValue: "RULES_NOT_COMPILED")
  package static let warnClass = DiagnosticCode(rawValue: "RULES_W_CLASS")
  package static let warnEvents = DiagnosticCode(rawValue: "RULES_W_EVENTS")
  package static let warnNumeric = DiagnosticCode(rawValue: "RULES_W_NUMERIC")
  package static let warnProduct = DiagnosticCode(rawValue: "RULES_W_PRODUCT")
  package static let warnTimeFormat = DiagnosticCode(rawValue: "RULES_W_TIME_FORMAT")
  package static let warnWildcard = DiagnosticCode(rawValue: "RULES_W_WILDCARD")
}
