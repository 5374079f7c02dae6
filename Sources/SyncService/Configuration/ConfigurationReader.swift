internal import SyncRules

/// Reads a configuration from a YAML file and the environment.
///
/// Every key `a.b` can also be given as `SLUICE_A_B`, which wins. Secrets can be files: `database_file`
/// names a file whose content is `database`. A key that nobody reads is an error with its place, and so is
/// such a variable.
package struct ConfigurationReader {
  package var environment: [String: String]
  package var readFile: (String) throws -> String

  private var document: YAMLDocument?
  private var problems: [String] = []
  private var known: Set<String> = []

  package init(
    environment: [String: String], readFile: @escaping (String) throws -> String
  ) {
    self.environment = environment
    self.readFile = readFile
  }

  /// Reads the file of this name, if one is given, and the environment.
  package mutating func read(file name: String?) throws(ConfigurationError) -> ServiceConfiguration
  {
    if let name { load(name) }
    var result = ServiceConfiguration()
    result.database = secret("database") ?? ""
    result.rules = string("rules").map { path(of: $0, besides: name) }
    if let listen = string("listen") {
      if let address = Self.address(listen) {
        result.listen = address
      } else {
        problem("listen", "must be host:port or unix:/path")
      }
    }
    result.auth = readAuth(besides: name)
    result.streams = readStreams()
    result.http.connections = count("http.connections") ?? result.http.connections
    result.http.bodyBytes = count("http.body_bytes") ?? result.http.bodyBytes
    result.databaseConnections = count("database_connections") ?? result.databaseConnections
    result.tick.busy = duration("tick.busy") ?? result.tick.busy
    result.tick.idle = duration("tick.idle") ?? result.tick.idle
    result.tombstoneRetention = duration("retention.tombstones") ?? result.tombstoneRetention
    if let level = string("log.level") {
      if ["debug", "info", "warning", "error"].contains(level) {
        result.logLevel = level
      } else {
        problem("log.level", "is one of debug, info, warning, error")
      }
    }
    refuseUnknownKeys()
    refuseUnknownVariables()
    guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    return result
  }

  private mutating func readAuth(besides name: String?) -> ServiceConfiguration.Auth {
    var auth = ServiceConfiguration.Auth()
    auth.audience = list("auth.audience") ?? []
    auth.keySetJSON = keys("auth.keys")
    auth.keySetFile = string("auth.jwks_file").map { path(of: $0, besides: name) }
    auth.keySetURL = string("auth.jwks_url")
    if let url = auth.keySetURL, !url.hasPrefix("https://"), !url.hasPrefix("http://") {
      problem("auth.jwks_url", "must be an http or https URL")
    }
    auth.maximumLifetime = duration("auth.max_lifetime") ?? auth.maximumLifetime
    auth.leeway = duration("auth.leeway") ?? auth.leeway
    return auth
  }

  private mutating func readStreams() -> ServiceConfiguration.Streams {
    var streams = ServiceConfiguration.Streams()
    streams.maximum = count("streams.maximum") ?? streams.maximum
    streams.starting = count("streams.starting") ?? streams.starting
    streams.keepalive = duration("streams.keepalive") ?? streams.keepalive
    streams.sendQueueBytes = count("streams.send_queue_bytes") ?? streams.sendQueueBytes
    streams.slowReaderTimeout =
      duration("streams.slow_reader_timeout") ?? streams.slowReaderTimeout
    streams.pageRows = count("streams.page_rows") ?? streams.pageRows
    streams.largeBytes = count("streams.large_bytes") ?? streams.largeBytes
    return streams
  }
}

// MARK: Values

extension ConfigurationReader {
  private mutating func string(_ key: String) -> String? {
    known.insert(key)
    if let value = environment[Self.variable(key)] { return value }
    guard let node = node(key) else { return nil }
    guard case .scalar(let scalar) = node.kind, scalar.resolved != .null else {
      problem(key, "must be a text, not \(node.kindName)")
      return nil
    }
    return scalar.text
  }

  /// A text that may stand in a file of its own.
  private mutating func secret(_ key: String) -> String? {
    let value = string(key)
    guard let file = string(key + "_file") else { return value }
    guard value == nil else {
      problem(key + "_file", "is given besides \(key)")
      return value
    }
    do {
      return try Self.trimmed(readFile(file))
    } catch {
      problem(key + "_file", "names a file that cannot be read")
      return nil
    }
  }

  private mutating func count(_ key: String) -> Int? {
    guard let text = string(key) else { return nil }
    guard let value = Int(text), value > 0 else {
      problem(key, "must be a whole number above 0")
      return nil
    }
    return value
  }

  private mutating func duration(_ key: String) -> Duration? {
    guard let text = string(key) else { return nil }
    guard let value = Self.duration(text) else {
      problem(key, "must be a time such as 20ms, 30s, 5m, 1h or 90d")
      return nil
    }
    return value
  }

  private mutating func list(_ key: String) -> [String]? {
    known.insert(key)
    if let value = environment[Self.variable(key)] {
      return value.split(separator: ",").map { Self.trimmed(String($0)) }
    }
    guard let node = node(key) else { return nil }
    switch node.kind {
    case .scalar(let scalar) where scalar.resolved != .null:
      return [scalar.text]
    case .sequence(let items):
      return items.compactMap { item in
        guard case .scalar(let scalar) = item.kind else {
          problem(key, "must be a list of texts")
          return nil
        }
        return scalar.text
      }
    default:
      problem(key, "must be a list of texts")
      return nil
    }
  }

  /// The keys as a JSON Web Key Set; a member `k_file` names the file that holds `k`.
  private mutating func keys(_ key: String) -> String? {
    known.insert(key)
    if let value = environment[Self.variable(key)] { return "{\"keys\":\(value)}" }
    guard let node = node(key) else { return nil }
    guard case .sequence(let items) = node.kind else {
      problem(key, "must be a list of keys")
      return nil
    }
    var members: [String] = []
    for item in items {
      guard case .mapping(let entries) = item.kind else {
        problem(key, "must be a list of keys, each a mapping such as {kty: oct, k: …}")
        return nil
      }
      var fields: [String] = []
      for entry in entries {
        guard case .scalar(let scalar) = entry.value.kind else {
          problem(key, "has a key whose \(entry.key) is \(entry.value.kindName)")
          continue
        }
        var (name, value) = (entry.key, scalar.text)
        if name == "k_file" {
          guard let content = try? readFile(value) else {
            problem(key, "has a k_file that cannot be read")
            continue
          }
          (name, value) = ("k", Self.trimmed(content))
        }
        fields.append("\(JSONText.quoted(name)):\(JSONText.quoted(value))")
      }
      members.append("{\(fields.joined(separator: ","))}")
    }
    return "{\"keys\":[\(members.joined(separator: ","))]}"
  }
}

// MARK: The document

extension ConfigurationReader {
  private mutating func load(_ name: String) {
    let text: String
    do {
      text = try readFile(name)
    } catch {
      problems.append("\(name): cannot be read")
      return
    }
    let (document, diagnostics) = YAMLDocument.parse(text, fileName: name)
    for diagnostic in diagnostics where diagnostic.severity == .error {
      problems.append(place(diagnostic.span, in: document?.file, name) + diagnostic.message)
    }
    self.document = document
  }

  private func node(_ key: String) -> YAMLNode? {
    var node = document?.root
    for part in key.split(separator: ".") {
      guard case .mapping(let entries)? = node?.kind else { return nil }
      node = entries.first { $0.key == part }?.value
    }
    if case .scalar(let scalar)? = node?.kind, scalar.resolved == .null { return nil }
    return node
  }

  private mutating func refuseUnknownKeys() {
    guard let document else { return }
    if case .scalar(let scalar) = document.root.kind, scalar.resolved == .null { return }
    guard case .mapping = document.root.kind else {
      problems.append("\(document.file.name): must be a mapping, not \(document.root.kindName)")
      return
    }
    refuseUnknownKeys(of: document.root, under: "", in: document.file)
  }

  private mutating func refuseUnknownKeys(
    of node: YAMLNode, under prefix: String, in file: SourceFile
  ) {
    guard case .mapping(let entries) = node.kind else { return }
    for entry in entries {
      let key = prefix + entry.key
      if known.contains(key) { continue }
      if known.contains(where: { $0.hasPrefix(key + ".") }) {
        guard case .mapping = entry.value.kind else {
          problem(key, "must be a mapping, not \(entry.value.kindName)")
          continue
        }
        refuseUnknownKeys(of: entry.value, under: key + ".", in: file)
      } else {
        let guess = Suggestion.nearest(to: key, among: known).map { "; did you mean \($0)?" } ?? ""
        problems.append(
          place(entry.keySpan, in: file, file.name) + "unknown key \(key)\(guess)")
      }
    }
  }

  private mutating func refuseUnknownVariables() {
    let names = Set(known.map(Self.variable)).union(Self.otherVariables)
    for (name, value) in environment.sorted(by: { $0.key < $1.key })
    where name.hasPrefix(Self.prefix) && !names.contains(name) {
      if name.hasPrefix(Self.testPrefix) || Self.tellsOfService(name, value) { continue }
      let guess = Suggestion.nearest(to: name, among: names).map { "; did you mean \($0)?" } ?? ""
      problems.append("unknown variable \(name) in the environment\(guess)")
    }
  }

  /// Whether it is one of the variables by which Kubernetes tells every container of the services in its
  /// namespace; a service may well be called `sluice`.
  private static func tellsOfService(_ name: String, _ value: String) -> Bool {
    if name.hasSuffix("_SERVICE_HOST") || name.contains("_SERVICE_PORT") { return true }
    if name.contains(#/_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/#) { return true }
    return name.hasSuffix("_PORT") && value.contains("://")
  }

  private mutating func problem(_ key: String, _ text: String) {
    if environment[Self.variable(key)] != nil {
      problems.append("\(Self.variable(key)) \(text)")
    } else {
      let file = document?.file
      problems.append(place(node(key)?.span, in: file, file?.name ?? "") + "\(key) \(text)")
    }
  }

  private func place(_ span: SourceSpan?, in file: SourceFile?, _ name: String) -> String {
    guard let span, let file else { return "\(name): " }
    let location = file.location(of: span.start)
    return "\(file.name):\(location.line):\(location.column): "
  }

  private func path(of path: String, besides name: String?) -> String {
    guard !path.hasPrefix("/"), let name, let slash = name.lastIndex(of: "/"),
      environment["SLUICE_RULES"] != path
    else { return path }
    return name[...slash] + path
  }
}

// MARK: Texts

extension ConfigurationReader {
  private static let prefix = "SLUICE_"
  /// What the project's tests are told.
  private static let testPrefix = "SLUICE_TEST_"
  /// The configuration's own name, and the token of `sluice-replica`.
  private static let otherVariables = ["SLUICE_CONFIG", "SLUICE_TOKEN"]

  static func variable(_ key: String) -> String {
    prefix + key.uppercased().replacing(".", with: "_")
  }

  /// `20ms`, `30s`, `5m`, `1h`, `90d`, or seconds without a unit.
  package static func duration(_ text: String) -> Duration? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let number = Int64(digits), number < 1 << 40 else { return nil }
    switch text.dropFirst(digits.count) {
    case "ms": return .milliseconds(number)
    case "s", "": return .seconds(number)
    case "m": return .seconds(number * 60)
    case "h": return .seconds(number * 3600)
    case "d": return .seconds(number * 86_400)
    default: return nil
    }
  }

  /// `host:port`, `[address]:port` or `unix:/path`.
  package static func address(_ text: String) -> ServiceConfiguration.Address? {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      return path.isEmpty ? nil : .unixSocket(path: path)
    }
    guard let colon = text.lastIndex(of: ":"),
      let port = Int(text[text.index(after: colon)...]), (0...65_535).contains(port)
    else { return nil }
    var host = String(text[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    return .tcp(host: host.isEmpty ? "0.0.0.0" : host, port: port)
  }

  private static func trimmed(_ text: String) -> String {
    guard let first = text.firstIndex(where: { !$0.isWhitespace }),
      let last = text.lastIndex(where: { !$0.isWhitespace })
    else { return "" }
    return String(text[first...last])
  }
}
