import Foundation
import SyncProtocol
import SyncRules

/// What a file of tests beside a rules file says: tables, rows, and what users must get of them.
struct RulesTestFile {
  /// A value of a column, as replicas have it: numbers and texts by their text.
  struct Value: Hashable {
    enum Class: Hashable {
      case null
      case number
      case text
    }

    var kind: Class
    var text: String
  }

  struct Row {
    var id: String
    /// The columns that are compared.
    var values: [String: Value]
    var line: Int
  }

  struct Test {
    var name: String
    var claims: [String: Any]
    var parameters: [String: Any]
    var subscriptions: [StreamSubscription]
    var includeDefaults: Bool
    /// SQL that runs before, and stays for the tests that follow.
    var change: String?
    /// The names of all buckets, each with its line; nil if they are not compared.
    var buckets: [(name: String, line: Int)]?
    /// The rows of each table that is compared, all of them.
    var tables: [(name: String, rows: [Row], line: Int)]
    var line: Int
  }

  /// Rows that the source has, in the file's order.
  struct SourceTable {
    var name: String
    /// JSON objects, each with its line.
    var rows: [(json: String, line: Int)]
  }

  var file: SourceFile
  /// SQL scripts that make the tables.
  var schema: [String] = []
  var tables: [SourceTable] = []
  var tests: [Test] = []

  /// Reads the file at `path`; scripts that it names stand relative to it.
  static func read(path: String) throws -> (file: RulesTestFile, diagnostics: [Diagnostic]) {
    let text: String
    do {
      text = try String(contentsOfFile: path, encoding: .utf8)
    } catch {
      throw CommandFailure(
        .wrongUsage, "\(path) cannot be read as UTF-8 text",
        hint: "The tests of RULES.yaml stand in RULES.test.yaml, or where --tests says.")
    }
    let (document, diagnostics) = YAMLDocument.parse(text, fileName: path)
    var reader = RulesTestReader(
      file: SourceFile(name: path, text: text),
      folder: URL(filePath: path).deletingLastPathComponent())
    reader.yaml.diagnostics = diagnostics
    if let document { reader.root(document.root) }
    return (reader.result, reader.yaml.diagnostics.inFileOrder())
  }
}

private struct RulesTestReader {
  var yaml = YAMLReader()
  var result: RulesTestFile
  private let folder: URL

  init(file: SourceFile, folder: URL) {
    result = RulesTestFile(file: file)
    self.folder = folder
  }

  mutating func root(_ node: YAMLNode) {
    guard let root = yaml.mapping(node, "a tests file", keys: ["schema", "rows", "tests"]) else {
      return
    }
    if let schema = root["schema"] {
      readSchema(schema)
    } else {
      refuse("schema is missing", remedy: "give the SQL that makes the tables, or its file", node)
    }
    if let rows = root["rows"], let tables = yaml.openMapping(rows, "rows") {
      result.tables = tables.entries.compactMap { sourceTable($0) }
    }
    guard let tests = root["tests"], let items = yaml.sequence(tests, "tests"), !items.isEmpty
    else {
      refuse("tests are missing", remedy: "tests: is a list of at least one test", node)
      return
    }
    result.tests = items.compactMap { test($0) }
  }

  private mutating func refuse(_ message: String, remedy: String?, _ node: YAMLNode) {
    yaml.diagnostics.append(.error(.yamlShape, message, remedy: remedy, at: node.span))
  }

  private func line(_ span: SourceSpan) -> Int { result.file.location(of: span.start).line }

  /// SQL, or a list of files.
  private mutating func readSchema(_ node: YAMLNode) {
    guard case .sequence(let items) = node.kind else {
      result.schema = yaml.string(node, "schema").map { [$0] } ?? []
      return
    }
    for item in items {
      guard let name = yaml.string(item, "a file of schema") else { continue }
      do {
        let path = URL(filePath: name, relativeTo: folder)
        result.schema.append(try String(contentsOf: path, encoding: .utf8))
      } catch {
        refuse("\(name) cannot be read as UTF-8 text", remedy: nil, item)
      }
    }
  }

  private mutating func sourceTable(_ entry: YAMLEntry) -> RulesTestFile.SourceTable? {
    guard let items = yaml.sequence(entry.value, "the rows of \(entry.key)") else { return nil }
    let rows = items.compactMap { item -> (json: String, line: Int)? in
      guard yaml.openMapping(item, "a row") != nil, let json = json(item) else { return nil }
      return (json, line(item.span))
    }
    return RulesTestFile.SourceTable(name: entry.key, rows: rows)
  }

  private mutating func test(_ node: YAMLNode) -> RulesTestFile.Test? {
    let keys = [
      "name", "user", "claims", "parameters", "subscribe", "defaults", "change", "expect",
    ]
    guard let test = yaml.mapping(node, "a test", keys: keys) else { return nil }
    guard let nameNode = test["name"], let name = yaml.string(nameNode, "name") else {
      refuse("a test has no name", remedy: nil, node)
      return nil
    }
    var claims = test["claims"].map { object($0, "claims") } ?? [:]
    if let user = test["user"] { claims["sub"] = yaml.string(user, "user") }
    var made = RulesTestFile.Test(
      name: name, claims: claims,
      parameters: test["parameters"].map { object($0, "parameters") } ?? [:],
      subscriptions: [], includeDefaults: true, change: nil, buckets: nil, tables: [],
      line: line(node.span))
    if let subscribe = test["subscribe"] {
      for item in yaml.sequence(subscribe, "subscribe") ?? [] {
        if let subscription = subscription(item) { made.subscriptions.append(subscription) }
      }
    }
    if let defaults = test["defaults"] {
      made.includeDefaults = yaml.boolean(defaults, "defaults") ?? true
    }
    made.change = test["change"].flatMap { yaml.string($0, "change") }
    guard let expect = test["expect"] else {
      refuse(
        "the test \"\(name)\" expects nothing", remedy: "expect: names buckets, rows or both", node)
      return nil
    }
    read(expect, into: &made)
    return made
  }

  private mutating func read(_ node: YAMLNode, into test: inout RulesTestFile.Test) {
    guard let expect = yaml.mapping(node, "expect", keys: ["buckets", "rows"]) else { return }
    if expect.entries.isEmpty { refuse("expect is empty", remedy: nil, node) }
    if let buckets = expect["buckets"] {
      test.buckets = (yaml.sequence(buckets, "buckets") ?? []).compactMap { item in
        yaml.string(item, "a bucket").map { ($0, line(item.span)) }
      }
    }
    guard let rows = expect["rows"], let tables = yaml.openMapping(rows, "rows") else { return }
    for table in tables.entries {
      let items = yaml.sequence(table.value, "the rows of \(table.key)") ?? []
      test.tables.append(
        (table.key, items.compactMap { expectedRow($0) }, line(table.keySpan)))
    }
  }

  /// An id, or a mapping with an id and the columns to compare.
  private mutating func expectedRow(_ node: YAMLNode) -> RulesTestFile.Row? {
    guard case .mapping(let entries) = node.kind else {
      guard let id = yaml.string(node, "a row's id") else { return nil }
      return RulesTestFile.Row(id: id, values: [:], line: line(node.span))
    }
    guard let idNode = entries.first(where: { $0.key == "id" })?.value,
      let id = yaml.string(idNode, "id")
    else {
      refuse("a row without id", remedy: "name its id, or give the id alone", node)
      return nil
    }
    var values: [String: RulesTestFile.Value] = [:]
    for entry in entries where entry.key != "id" {
      guard case .scalar(let scalar) = entry.value.kind else {
        refuse(
          "\(entry.key) is no single value", remedy: "lists and objects are JSON texts in replicas",
          entry.value)
        continue
      }
      values[entry.key] = RulesTestFile.Value(scalar)
    }
    return RulesTestFile.Row(id: id, values: values, line: line(node.span))
  }

  private mutating func subscription(_ node: YAMLNode) -> StreamSubscription? {
    guard let text = yaml.string(node, "a subscription") else { return nil }
    do {
      return try StreamSubscription(parsing: text)
    } catch {
      refuse(error.message, remedy: error.hint, node)
      return nil
    }
  }

  private mutating func object(_ node: YAMLNode, _ what: String) -> [String: Any] {
    guard yaml.openMapping(node, what) != nil else { return [:] }
    return node.value as? [String: Any] ?? [:]
  }

  private func json(_ node: YAMLNode) -> String? {
    guard let data = try? JSONSerialization.data(withJSONObject: node.value) else { return nil }
    return String(decoding: data, as: UTF8.self)
  }
}

extension YAMLNode {
  /// As `JSONSerialization` takes it.
  fileprivate var value: Any {
    switch kind {
    case .sequence(let items): items.map(\.value)
    case .mapping(let entries):
      Dictionary(entries.map { ($0.key, $0.value.value) }, uniquingKeysWith: { first, _ in first })
    case .scalar(let scalar):
      switch scalar.resolved {
      case .null: NSNull()
      case .boolean(let value): value
      case .integer(let value): value
      case .number(let value): value.isFinite ? value : scalar.text
      case .string(let text): text
      }
    }
  }
}

extension RulesTestFile.Value {
  /// A value in the tests file. Replicas have 1 and 0 for true and false.
  fileprivate init(_ scalar: YAMLScalar) {
    switch scalar.resolved {
    case .null: self.init(kind: .null, text: "NULL")
    case .boolean(let value): self.init(kind: .number, text: value ? "1" : "0")
    case .integer(let value): self.init(kind: .number, text: String(value))
    case .number(let value): self.init(kind: .number, text: String(value))
    case .string(let text): self.init(kind: .text, text: text)
    }
  }

  /// A value of a row's JSON.
  init(json value: Any?) {
    switch value {
    case let text as String: self.init(kind: .text, text: text)
    case let number as NSNumber:
      let isWhole = number.doubleValue == number.doubleValue.rounded() && !"\(number)".contains("e")
      self.init(kind: .number, text: isWhole ? "\(number)" : String(number.doubleValue))
    default: self.init(kind: .null, text: "NULL")
    }
  }

  /// As a message shows it.
  var shown: String { kind == .text ? "\"\(text)\"" : text }
}
