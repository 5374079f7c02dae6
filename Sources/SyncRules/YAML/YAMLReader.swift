/// Takes typed values out of a YAML tree, collecting what does not fit.
///
/// Mappings are closed: a key that is not asked for is an error, with the nearest known key named.
/// A value of the wrong kind is reported and read as if it were absent, so that one mistake does
/// not hide the next.
package struct YAMLReader {
  package var diagnostics: [Diagnostic] = []

  package init() {}

  /// The mapping at `node`. `what` names it in messages: "a bucket definition".
  package mutating func mapping(
    _ node: YAMLNode, _ what: String, keys: [String]
  ) -> YAMLMapping? {
    guard let mapping = openMapping(node, what) else { return nil }
    for entry in mapping.entries where !keys.contains(entry.key) {
      diagnostics.append(
        .error(
          .unknownKey, "\(what) has no key '\(entry.key)'",
          remedy: remedy(for: entry.key, among: keys), at: entry.keySpan))
    }
    return mapping
  }

  /// The mapping at `node`, whose keys are names of the author's.
  package mutating func openMapping(_ node: YAMLNode, _ what: String) -> YAMLMapping? {
    guard case .mapping(let entries) = node.kind else {
      mismatch(node, "\(what) must be a mapping of keys to values")
      return nil
    }
    return YAMLMapping(entries: entries, span: node.span)
  }

  /// The items of a list.
  package mutating func sequence(_ node: YAMLNode, _ what: String) -> [YAMLNode]? {
    guard case .sequence(let items) = node.kind else {
      mismatch(node, "\(what) must be a list", remedy: "put '- ' in front of each item")
      return nil
    }
    return items
  }

  /// Any scalar that is not null, with its text.
  package mutating func scalar(_ node: YAMLNode, _ what: String) -> YAMLScalar? {
    guard case .scalar(let scalar) = node.kind, scalar.resolved != .null else {
      mismatch(node, "\(what) must be a string")
      return nil
    }
    return scalar
  }

  package mutating func string(_ node: YAMLNode, _ what: String) -> String? {
    scalar(node, what)?.text
  }

  package mutating func boolean(
    _ node: YAMLNode, _ what: String, code: DiagnosticCode = .yamlShape
  ) -> Bool? {
    guard case .scalar(let scalar) = node.kind, case .boolean(let value) = scalar.resolved else {
      mismatch(node, "\(what) must be true or false", code: code)
      return nil
    }
    return value
  }

  package mutating func integer(
    _ node: YAMLNode, _ what: String, in range: ClosedRange<Int>, code: DiagnosticCode = .yamlShape
  ) -> Int? {
    guard case .scalar(let scalar) = node.kind, case .integer(let value) = scalar.resolved,
      range.contains(value)
    else {
      let bounds = range.upperBound == .max ? "of at least" : "from"
      let upper = range.upperBound == .max ? "" : " to \(range.upperBound)"
      mismatch(
        node, "\(what) must be a whole number \(bounds) \(range.lowerBound)\(upper)", code: code)
      return nil
    }
    return value
  }

  private mutating func mismatch(
    _ node: YAMLNode, _ message: String, remedy: String? = nil, code: DiagnosticCode = .yamlShape
  ) {
    let found = code == .yamlShape ? ", not \(node.kindName)" : ""
    diagnostics.append(
      .error(code, message + found, remedy: remedy, at: node.span))
  }

  private func remedy(for key: String, among keys: [String]) -> String {
    if let nearest = Suggestion.nearest(to: key, among: keys) {
      return "did you mean '\(nearest)'?"
    }
    return "known keys: \(keys.joined(separator: ", "))"
  }
}

/// The entries of one mapping, found by key.
package struct YAMLMapping: Sendable {
  package let entries: [YAMLEntry]
  package let span: SourceSpan

  package subscript(key: String) -> YAMLNode? { entry(key)?.value }

  package func entry(_ key: String) -> YAMLEntry? { entries.first { $0.key == key } }
}
