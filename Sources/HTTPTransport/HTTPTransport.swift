/// Sends HTTP requests and streams what comes back.
///
/// `CurlTransport` is the real one; tests script their own with `TransportBody(pull:)`.
package protocol HTTPTransport: Sendable {
  /// Sends the request and returns when the response's head has arrived.
  ///
  /// Any status is a response. Throws `TransportError` when there is none, and `CancellationError` when
  /// the task is cancelled.
  func send(_ request: TransportRequest) async throws -> TransportResponse
}

/// One request. The body is sent with its length; a nil body sends none.
package struct TransportRequest: Sendable {
  package var method: String
  package var url: String
  package var headers: [(name: String, value: String)]
  package var body: [UInt8]?
  /// The bound of the whole exchange, body included; nil for streams.
  package var timeout: Duration?

  package init(
    method: String = "GET", url: String, headers: [(name: String, value: String)] = [],
    body: [UInt8]? = nil, timeout: Duration? = nil
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.timeout = timeout
  }
}

/// The head of a response, and its body still to come.
package struct TransportResponse: Sendable {
  package let status: Int
  package let headers: [(name: String, value: String)]
  package let body: TransportBody

  package init(status: Int, headers: [(name: String, value: String)], body: TransportBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The first header of that name, whatever its case.
  package func header(_ name: String) -> String? {
    let wanted = name.lowercased()
    return headers.first { $0.name.lowercased() == wanted }?.value
  }
}
