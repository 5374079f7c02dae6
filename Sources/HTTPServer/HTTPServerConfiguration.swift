/// Where an `HTTPServer` listens, and its limits. Every buffer and every wait has one.
package struct HTTPServerConfiguration: Sendable {
  package enum Address: Sendable, Equatable {
    /// Port 0 takes a free one, which `HTTPServer.boundPort` then tells.
    case tcp(host: String, port: Int)
    /// A path; a socket file left there by a process that is gone is replaced.
    case unixSocket(String)
  }

  package var address: Address
  /// The longest request body; more is answered 413.
  package var maxBodyBytes: Int
  /// The longest request line and headers together; more is answered 431 (414 for the line).
  package var maxHeaderBytes: Int
  /// Open connections; those beyond are answered 503 and closed.
  package var maxConnections: Int
  /// From the first byte of a request, or the opening of a connection, to the end of its head.
  package var headTimeout: Duration
  /// From the end of the head to the end of the body.
  package var bodyTimeout: Duration
  /// How long a connection may stay open between requests.
  package var idleTimeout: Duration
  /// Queued bytes of one response from which `HTTPBodyWriter.write` waits.
  package var sendQueueLimit: Int
  /// `SO_SNDBUF`: what a stalled reader holds of kernel memory.
  package var sendBuffer: Int
  /// How long the peer may take no byte of what is queued, before it is closed.
  package var slowReaderTimeout: Duration
  /// How long a graceful stop waits for the responses under way.
  package var drainTimeout: Duration

  package init(
    address: Address = .tcp(host: "127.0.0.1", port: 0), maxBodyBytes: Int = 10 << 20,
    maxHeaderBytes: Int = 32 << 10, maxConnections: Int = 10_000,
    headTimeout: Duration = .seconds(10), bodyTimeout: Duration = .seconds(60),
    idleTimeout: Duration = .seconds(75), sendQueueLimit: Int = 1 << 20,
    sendBuffer: Int = 128 << 10, slowReaderTimeout: Duration = .seconds(60),
    drainTimeout: Duration = .seconds(10)
  ) {
    self.address = address
    self.maxBodyBytes = maxBodyBytes
    self.maxHeaderBytes = maxHeaderBytes
    self.maxConnections = maxConnections
    self.headTimeout = headTimeout
    self.bodyTimeout = bodyTimeout
    self.idleTimeout = idleTimeout
    self.sendQueueLimit = sendQueueLimit
    self.sendBuffer = sendBuffer
    self.slowReaderTimeout = slowReaderTimeout
    self.drainTimeout = drainTimeout
  }
}
