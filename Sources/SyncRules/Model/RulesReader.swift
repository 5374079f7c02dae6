/// Reads a rules file: YAML, SQL and everything that can be said without knowing the database.
///
/// All errors of the file are collected. There is a `RuleSet` whenever the text is a YAML mapping;
/// it must not be deployed if there are errors, but may be compiled to find more of them.
package struct RulesReader {
  static let rootKeys = ["config", "bucket_definitions", "streams", "with", "event_definitions"]
  private static let dangerousTag = "!accept_potentially_dangerous_queries"

  private let file: SourceFile
  var yaml = YAMLReader()
  private(set) var edition = 1

  private init(file: SourceFile) {
    self.file = file
  }

  package static func read(
    _ text: String, fileName: String
  ) -> (rules: RuleSet?, diagnostics: [Diagnostic]) {
    let (document, diagnostics) = YAMLDocument.parse(text, fileName: fileName)
    guard let document else { return (nil, diagnostics) }
    var reader = RulesReader(file: document.file)
    reader.yaml.diagnostics = diagnostics
    let rules = reader.root(document.root)
    return (rules, reader.yaml.diagnostics.inFileOrder())
  }

  mutating func refuse(
    _ code: DiagnosticCode, _ message: String, remedy: String? = nil, at span: SourceSpan?
  ) {
    yaml.diagnostics.append(.error(code, message, remedy: remedy, at: span))
  }

  mutating func warn(
    _ code: DiagnosticCode, _ message: String, remedy: String? = nil, at span: SourceSpan?
  ) {
    yaml.diagnostics.append(.warning(code, message, remedy: remedy, at: span))
  }

  // MARK: The root

  private mutating func root(_ node: YAMLNode) -> RuleSet? {
    guard let root = yaml.mapping(node, "a rules file", keys: Self.rootKeys) else { return nil }
    checkTags(node)
    let (edition, options) = config(root)
    self.edition = edition
    checkSections(root)
    let buckets = root["bucket_definitions"].map { bucketDefinitions($0) } ?? []
    let streams = edition > 1 ? root["streams"].map { streamDefinitions($0) } ?? [] : []
    checkNames(buckets, streams)
    let shared = edition == 3 ? root["with"].map { namedQueries($0) } ?? [] : []
    let events = root["event_definitions"].map { eventDefinitions($0) } ?? []
    return RuleSet(
      file: file, edition: edition, options: options, bucketDefinitions: buckets, streams: streams,
      sharedQueries: shared, events: events)
  }

  private mutating func checkTags(_ node: YAMLNode) {
    switch node.kind {
    case .scalar: break
    case .sequence(let items): for item in items { checkTags(item) }
    case .mapping(let entries):
      for entry in entries { checkTags(entry.value) }
      if node.tag == Self.dangerousTag { return }
    }
    if let tag = node.tag {
      refuse(
        .yamlSyntax, "the tag '\(tag)' has no meaning here", remedy: "remove it", at: node.span)
    }
  }

  /// Checks which sections the edition allows and requires.
  private mutating func checkSections(_ root: YAMLMapping) {
    let streams = root.entry("streams")
    let buckets = root.entry("bucket_definitions")
    switch edition {
    case 3:
      if let buckets {
        refuse(
          .bucketsNotInEdition3, "edition 3 has no bucket_definitions",
          remedy: "rewrite them as streams, or set 'edition: 2'", at: buckets.keySpan)
      }
      if streams == nil, buckets == nil {
        refuse(
          .missingDefinitions, "the file defines no streams", remedy: "add a 'streams:' mapping",
          at: nil)
      }
      return
    case 2:
      if let streams {
        warn(
          .warnAlpha, "the streams of edition 2 are an early form of today's",
          remedy: "set 'edition: 3'",
          at: streams.keySpan)
      }
    default:
      if let streams {
        refuse(
          .streamsNeedEdition, "streams need an edition",
          remedy: "add 'config:' with 'edition: 3' to the file", at: streams.keySpan)
      }
    }
    if let with = root.entry("with") {
      refuse(
        .needsEdition3, "'with' needs edition 3", remedy: "set 'edition: 3'", at: with.keySpan)
    }
    if streams == nil, buckets == nil {
      refuse(
        .missingDefinitions, "the file defines no buckets",
        remedy: "add a 'bucket_definitions:' mapping", at: nil)
    }
  }

  private mutating func checkNames(_ buckets: [BucketDefinition], _ streams: [StreamDefinition]) {
    let taken = Set(buckets.map(\.name))
    for stream in streams where taken.contains(stream.name) {
      refuse(
        .duplicateName, "there is a bucket definition with the name '\(stream.name)' already",
        remedy: "give the stream another name", at: stream.nameSpan)
    }
  }

  // MARK: Queries

  /// Parses a SQL scalar; there is no result if the value is no string.
  mutating func query(_ node: YAMLNode, _ what: String, _ dialect: QueryDialect) -> RuleQuery? {
    guard let scalar = yaml.scalar(node, what) else { return nil }
    guard case .string = scalar.resolved else {
      refuse(.yamlShape, "\(what) must be a SELECT, not \(node.kindName)", at: node.span)
      return nil
    }
    let map = ScalarDecoder.map(scalar, in: file)
    var (select, findings) = SQLParser.parse(scalar.text, map: map)
    if let parsed = select { findings += QueryShape.check(parsed, dialect) }
    if findings.hasErrors { select = nil }
    yaml.diagnostics += findings
    return RuleQuery(text: scalar.text, span: scalar.span, select: select)
  }

  mutating func queries(_ node: YAMLNode, _ what: String, _ dialect: QueryDialect) -> [RuleQuery] {
    guard let items = yaml.sequence(node, "'\(what)'") else { return [] }
    var queries: [RuleQuery] = []
    for item in items {
      if let query = query(item, "each of '\(what)'", dialect) { queries.append(query) }
    }
    return queries
  }
}
