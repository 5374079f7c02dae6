package import EventLoop
package import ServiceRuntime
internal import Synchronization

/// An HTTP/1.1 server: whole requests in, whole or streamed responses out, limits kept.
///
/// ```swift
/// let server = HTTPServer(configuration, loop: loop) { request, responder in
///   try? await responder.respond(status: 200, body: Array("hello".utf8))
/// }
/// ```
///
/// The handler runs on the server's loop unless it says otherwise, so it must not compute for long.
/// Inside it, `StopSignal.current` is asked when the server stops, and its task is cancelled when the
/// client leaves. Methods and paths are the handler's to judge; malformed requests never reach it.
package final class HTTPServer: Service {
  package let name = "http"

  /// The port listened at, once started; 0 for a Unix socket.
  package var boundPort: Int { port.load(ordering: .acquiring) }

  private let core: HTTPServerCore
  private let port = Atomic<Int>(0)

  package init(
    _ configuration: HTTPServerConfiguration = HTTPServerConfiguration(), loop: EventLoop,
    observer: any Observer = NoObserver(), metrics: Metrics = Metrics(),
    handler: @escaping @Sendable (HTTPRequest, HTTPResponder) async -> Void
  ) {
    core = HTTPServerCore(
      configuration: configuration, loop: loop, observer: observer, metrics: metrics,
      handler: handler)
  }

  /// Listens; throws `HTTPListenError`. `run()` does it too.
  package func start() async throws {
    port.store(try await core.start(), ordering: .releasing)
  }

  /// Serves until `StopSignal.current` asks or the task is cancelled, and stops gracefully.
  package func run() async throws {
    try await start()
    await StopSignal.wait()
    await stop()
  }

  /// Accepts no more, waits for responses under way up to the drain timeout, and closes the rest.
  package func stop() async {
    await core.stop()
  }
}
