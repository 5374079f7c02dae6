internal import EventLoop

/// The peer has left, was closed for taking nothing, or the response is over: nothing written now
/// arrives.
package struct HTTPClientGone: Error, Sendable, CustomStringConvertible {
  package init() {}
  package var description: String { "the client is gone" }
}

/// A response that the handler got wrong: a second head, or a header that would break the line.
package struct HTTPResponseError: Error, Sendable, CustomStringConvertible {
  package let description: String
}

/// Answers one request, once.
///
/// A handler that returns without an answer gives a 500; one that returns with a stream unfinished
/// breaks the connection, so that the peer sees it cut off.
package struct HTTPResponder: Sendable {
  let connection: HTTPConnection
  let exchange: Int

  /// Sends a whole response. Returns when it is queued below the limit.
  package func respond(
    status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []
  ) async throws {
    try await respond(status: status, headers: headers, body: SharedBytes(body))
  }

  package func respond(
    status: Int, headers: HTTPHeaders = [:], body: SharedBytes
  ) async throws {
    try await connection.respond(exchange, status: status, headers: headers, body: body)
  }

  /// Sends the head; the writer sends the body in chunks.
  package func start(status: Int, headers: HTTPHeaders = [:]) async throws -> HTTPBodyWriter {
    try await connection.start(exchange, status: status, headers: headers)
    return HTTPBodyWriter(connection: connection, exchange: exchange)
  }
}

/// The body of a streamed response.
///
/// The await of `write` is the back pressure: it returns when less than the limit is queued.
package final class HTTPBodyWriter: Sendable {
  private let connection: HTTPConnection
  private let exchange: Int

  init(connection: HTTPConnection, exchange: Int) {
    self.connection = connection
    self.exchange = exchange
  }

  /// Queues the bytes, and returns when the queue is below its limit.
  ///
  /// Throws `HTTPClientGone` when the peer has left or took nothing for too long, and
  /// `CancellationError` when the task is cancelled (the bytes stay queued).
  package func write(_ bytes: SharedBytes) async throws {
    try await connection.write(exchange, bytes)
  }

  package func write(_ bytes: [UInt8]) async throws {
    try await connection.write(exchange, SharedBytes(bytes))
  }

  /// Queues the bytes whatever waits already; false when the peer is gone. For a feed that looks at
  /// `queuedBytes` first. To be called on the server's loop.
  package func append(_ bytes: SharedBytes) -> Bool {
    connection.assumeIsolated { $0.append(exchange, bytes) }
  }

  /// Ends the body. Bytes still queued go out in the background.
  package func finish() async {
    await connection.finish(exchange)
  }

  /// Bytes of the connection that the kernel has not taken yet.
  package var queuedBytes: Int { connection.queuedBytes }

  /// Calls `handler` on the server's loop when the response is over, in whatever way; soon if it is.
  package func onClose(_ handler: @escaping @Sendable () -> Void) async {
    await connection.onClose(exchange, handler)
  }
}
