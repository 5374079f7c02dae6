/// The limits of a `CurlTransport`.
package struct CurlTransportConfiguration: Sendable {
  /// From the start of resolving the name to the end of the handshake.
  package var connectTimeout: Duration
  /// How long no byte may arrive, once sent, while the consumer is ready for more.
  package var idleTimeout: Duration
  /// How many received bytes wait for the consumer before reading stops.
  package var receiveBuffer: Int
  /// Certificates to trust in place of the system's, as a PEM file.
  package var certificateFile: String?
  /// The path of a Unix socket to connect to, whatever host the URL names.
  package var unixSocket: String?

  package init(
    connectTimeout: Duration = .seconds(10), idleTimeout: Duration = .seconds(60),
    receiveBuffer: Int = 256 << 10, certificateFile: String? = nil, unixSocket: String? = nil
  ) {
    self.connectTimeout = connectTimeout
    self.idleTimeout = idleTimeout
    self.receiveBuffer = receiveBuffer
    self.certificateFile = certificateFile
    self.unixSocket = unixSocket
  }
}

/// HTTP/1.1 by libcurl: one thread drives every transfer of the transport.
///
/// Only http and https, no redirects, no cookies; connections are kept and used again. The thread ends
/// when the transport and all its bodies are gone.
package final class CurlTransport: HTTPTransport {
  private let configuration: CurlTransportConfiguration
  private let loop = CurlLoop()

  package init(_ configuration: CurlTransportConfiguration = CurlTransportConfiguration()) {
    self.configuration = configuration
  }

  package func send(_ request: TransportRequest) async throws -> TransportResponse {
    let handle = try CurlHandle(request, configuration)
    let transfer = CurlTransfer(
      loop: loop, idleTimeout: configuration.idleTimeout, bufferLimit: configuration.receiveBuffer)
    try Task.checkCancellation()
    loop.start(transfer, handle)
    let head = try await transfer.head()
    let body = TransportBody(
      pull: { try await transfer.nextChunk() },
      drop: { transfer.abandon() })
    return TransportResponse(status: head.status, headers: head.headers, body: body)
  }
}
