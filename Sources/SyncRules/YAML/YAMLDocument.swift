/// The tree of a YAML file that holds one document.
///
/// Beyond YAML itself, a document must have no duplicate keys, only scalars as keys, at most
/// `maximumDepth` levels, and at most `maximumNodes` nodes after its aliases are expanded.
package struct YAMLDocument: Sendable {
  package static let maximumBytes = 1 << 20
  package static let maximumDepth = 32
  package static let maximumNodes = 50_000

  package let file: SourceFile
  package let root: YAMLNode

  /// Reads a document. There is no document if the text is not YAML; a document with duplicate
  /// keys is returned beside its diagnostics, the first of the keys counting.
  package static func parse(
    _ text: String, fileName: String
  ) -> (document: YAMLDocument?, diagnostics: [Diagnostic]) {
    let file = SourceFile(name: fileName, text: text)
    guard text.utf8.count <= maximumBytes else {
      return (
        nil, [.error(.yamlSyntax, "the file is larger than \(maximumBytes) bytes", at: nil)]
      )
    }
    guard var builder = YAMLTreeBuilder(text) else {
      return (nil, [.error(.yamlSyntax, "there is no memory to read the file", at: nil)])
    }
    let root = builder.document()
    let diagnostics = builder.diagnostics
    return (root.map { YAMLDocument(file: file, root: $0) }, diagnostics)
  }
}

/// Builds the tree from events.
private struct YAMLTreeBuilder: ~Copyable {
  private struct Stop: Error {}

  var diagnostics: [Diagnostic] = []
  private var parser: YAMLEventParser
  private var anchors: [String: (node: YAMLNode, count: Int)] = [:]
  private var nodeCount = 0
  private var depth = 0

  init?(_ text: String) {
    guard let parser = YAMLEventParser(text) else { return nil }
    self.parser = parser
  }

  mutating func document() -> YAMLNode? {
    do {
      var root: YAMLNode?
      while true {
        let (event, span) = try next()
        switch event {
        case .end:
          return root
            ?? YAMLNode(
              kind: .scalar(
                YAMLScalar(
                  text: "", style: .plain, span: SourceSpan(start: 0, end: 0), isString: false)),
              span: SourceSpan(start: 0, end: 0), tag: nil)
        case .documentStart where root != nil:
          throw stop("the file holds more than one document", at: span)
        case .documentStart, .other: continue
        default: root = try node(event, span)
        }
      }
    } catch {
      return nil
    }
  }

  private mutating func next() throws(Stop) -> (event: YAMLEventParser.Event, span: SourceSpan) {
    do {
      return try parser.next()
    } catch {
      throw stop(
        "this is not YAML: \(error.message)",
        at: SourceSpan(start: error.offset, end: error.offset + 1))
    }
  }

  private mutating func stop(_ message: String, at span: SourceSpan) -> Stop {
    diagnostics.append(.error(.yamlSyntax, message, at: span))
    return Stop()
  }

  private mutating func node(
    _ event: YAMLEventParser.Event, _ span: SourceSpan
  ) throws(Stop) -> YAMLNode {
    let before = nodeCount
    try count(1, at: span)
    switch event {
    case .scalar(let value, let style, let tag, let anchor):
      let node = YAMLNode(
        kind: .scalar(scalar(value, style, tag: tag, span)), span: span, tag: custom(tag))
      remember(anchor, node, since: before)
      return node
    case .alias(let name):
      guard let (node, size) = anchors[name] else {
        throw stop("no complete value before this has the anchor '\(name)'", at: span)
      }
      try count(size, at: span)
      return node
    case .sequenceStart(let tag, let anchor):
      let node = try sequence(from: span, tag: tag)
      remember(anchor, node, since: before)
      return node
    case .mappingStart(let tag, let anchor):
      let node = try mapping(from: span, tag: tag)
      remember(anchor, node, since: before)
      return node
    case .documentStart, .end, .sequenceEnd, .mappingEnd, .other:
      throw stop("a value is missing here", at: span)
    }
  }

  private mutating func sequence(from start: SourceSpan, tag: String?) throws(Stop) -> YAMLNode {
    try descend(at: start)
    defer { depth -= 1 }
    var items: [YAMLNode] = []
    while true {
      let (event, span) = try next()
      if case .sequenceEnd = event {
        let end = items.last.map { max($0.span.end, span.start) } ?? span.end
        return YAMLNode(
          kind: .sequence(items), span: SourceSpan(start: start.start, end: end), tag: custom(tag))
      }
      items.append(try node(event, span))
    }
  }

  private mutating func mapping(from start: SourceSpan, tag: String?) throws(Stop) -> YAMLNode {
    try descend(at: start)
    defer { depth -= 1 }
    var entries: [YAMLEntry] = []
    var seen: Set<String> = []
    while true {
      let (event, keySpan) = try next()
      if case .mappingEnd = event {
        let end = entries.last.map { $0.value.span.end } ?? keySpan.end
        return YAMLNode(
          kind: .mapping(entries), span: SourceSpan(start: start.start, end: end), tag: custom(tag))
      }
      guard case .scalar(let key) = try node(event, keySpan).kind else {
        throw stop("a key must be a plain name", at: keySpan)
      }
      let (valueEvent, valueSpan) = try next()
      let value = try node(valueEvent, valueSpan)
      if seen.insert(key.text).inserted {
        entries.append(YAMLEntry(key: key.text, keySpan: keySpan, value: value))
      } else {
        diagnostics.append(
          .error(
            .yamlSyntax, "the key '\(key.text)' is in this mapping twice",
            remedy: "keep one of the two, or give this one another name", at: keySpan))
      }
    }
  }

  private mutating func descend(at span: SourceSpan) throws(Stop) {
    depth += 1
    guard depth <= YAMLDocument.maximumDepth else {
      throw stop("values are nested more than \(YAMLDocument.maximumDepth) levels deep", at: span)
    }
  }

  private mutating func count(_ nodes: Int, at span: SourceSpan) throws(Stop) {
    nodeCount += nodes
    guard nodeCount <= YAMLDocument.maximumNodes else {
      throw stop("the file has more than \(YAMLDocument.maximumNodes) values", at: span)
    }
  }

  private mutating func remember(_ anchor: String?, _ node: YAMLNode, since before: Int) {
    guard let anchor else { return }
    anchors[anchor] = (node, nodeCount - before)
  }

  private func scalar(
    _ value: String, _ style: YAMLScalar.Style, tag: String?, _ span: SourceSpan
  ) -> YAMLScalar {
    let isTagged = tag == "tag:yaml.org,2002:str"
    return YAMLScalar(text: value, style: style, span: span, isString: style != .plain || isTagged)
  }

  /// The tag if it is not one of YAML's own.
  private func custom(_ tag: String?) -> String? {
    guard let tag, tag != "!", !tag.hasPrefix("tag:yaml.org,2002:") else { return nil }
    return tag
  }
}
