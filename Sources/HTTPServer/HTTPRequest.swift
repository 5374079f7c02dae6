/// One request, whole: its body has been read, within the limit.
package struct HTTPRequest: Sendable {
  package var method: String
  /// The path as sent, still percent-encoded.
  package var path: String
  /// The path's segments, decoded; "/" has none. Each may hold any character but NUL, "/" too.
  package var segments: [String]
  package var query: [(name: String, value: String)]
  package var headers: HTTPHeaders
  package var body: [UInt8]
  /// The peer's numeric address; empty on a Unix socket.
  package var remoteAddress: String
  /// Whether the connection may carry another request, as the peer sees it.
  var keepsAlive: Bool
  /// HTTP/1.0 knows no chunks.
  var isVersion10: Bool

  package init(
    method: String, path: String, segments: [String], query: [(name: String, value: String)] = [],
    headers: HTTPHeaders = [:], body: [UInt8] = [], remoteAddress: String = ""
  ) {
    self.method = method
    self.path = path
    self.segments = segments
    self.query = query
    self.headers = headers
    self.body = body
    self.remoteAddress = remoteAddress
    keepsAlive = true
    isVersion10 = false
  }

  /// The first value of that name in the query.
  package func query(_ name: String) -> String? {
    query.first { $0.name == name }?.value
  }
}

/// Header fields in order; names are found whatever their case.
package struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  package struct Field: Sendable, Equatable {
    /// In lower case.
    package let name: String
    package let value: String
  }

  package private(set) var fields: [Field] = []

  package init() {}

  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { add(name, value) }
  }

  /// The first value of the name.
  package subscript(name: String) -> String? {
    let wanted = name.lowercased()
    return fields.first { $0.name == wanted }?.value
  }

  package func all(_ name: String) -> [String] {
    let wanted = name.lowercased()
    return fields.filter { $0.name == wanted }.map(\.value)
  }

  package mutating func add(_ name: String, _ value: String) {
    fields.append(Field(name: name.lowercased(), value: value))
  }
}
