/// One finding about a rules file: what is wrong, where, and what to write instead.
package struct Diagnostic: Error, Sendable, Hashable {
  package enum Severity: String, Sendable, Codable {
    /// The file cannot be deployed.
    case error
    /// The file can be deployed; its author should look.
    case warning
  }

  package var code: DiagnosticCode
  package var severity: Severity
  /// What is wrong: a clause that begins in lower case and has no final stop.
  package var message: String
  /// What to write instead, if there is one answer.
  package var remedy: String?
  /// Where in the file; `nil` for findings about the file as a whole.
  package var span: SourceSpan?

  package init(
    code: DiagnosticCode, severity: Severity, message: String, remedy: String? = nil,
    span: SourceSpan?
  ) {
    self.code = code
    self.severity = severity
    self.message = message
    self.remedy = remedy
    self.span = span
  }

  package static func error(
    _ code: DiagnosticCode, _ message: String, remedy: String? = nil, at span: SourceSpan?
  ) -> Diagnostic {
    Diagnostic(code: code, severity: .error, message: message, remedy: remedy, span: span)
  }

  package static func warning(
    _ code: DiagnosticCode, _ message: String, remedy: String? = nil, at span: SourceSpan?
  ) -> Diagnostic {
    Diagnostic(code: code, severity: .warning, message: message, remedy: remedy, span: span)
  }
}

extension [Diagnostic] {
  /// Whether the file must not be deployed.
  package var hasErrors: Bool { contains { $0.severity == .error } }

  /// Those without a place first, the others by where they begin.
  package func inFileOrder() -> [Diagnostic] {
    enumerated().sorted { left, right in
      (left.element.span?.start ?? -1, left.offset) < (
        right.element.span?.start ?? -1, right.offset
      )
    }.map(\.element)
  }
}
