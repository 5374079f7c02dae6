import EventLoop
import Glibc
import HTTPTransport
import ServiceRuntime
import Synchronization
import Testing

@testable import HTTPServer

/// Runs `body` beside a server with that handler, and stops the server.
private func withServer(
  _ change: (inout HTTPServerConfiguration) -> Void = { _ in },
  handler: @escaping @Sendable (HTTPRequest, HTTPResponder) async -> Void,
  _ body: (HTTPServer) async throws -> Void
) async throws {
  var configuration = HTTPServerConfiguration(drainTimeout: .milliseconds(300))
  change(&configuration)
  let server = HTTPServer(configuration, loop: EventLoop(name: "http"), handler: handler)
  try await server.start()
  do {
    try await body(server)
  } catch {
    await server.stop()
    throw error
  }
  await server.stop()
}

/// Answers with the request, as text.
@Sendable private func echo(_ request: HTTPRequest, _ responder: HTTPResponder) async {
  let query = request.query.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
  let text = "\(request.method) \(request.segments) \(query) "
  try? await responder.respond(status: 200, body: Array(text.utf8) + request.body)
}

/// Polls until the condition holds, for at most five seconds.
private func eventually(_ condition: () -> Bool) async -> Bool {
  for _ in 0..<500 {
    if condition() { return true }
    try? await Task.sleep(for: .milliseconds(10))
  }
  return condition()
}

@Suite(.serialized, .timeLimit(.minutes(2))) struct HTTPServerTests {
  @Test func `a request is decoded and answered, and the connection carries the next`() async throws
  {
    try await withServer(handler: echo) { server in
      let client = RawClient(port: server.boundPort)
      client.send("GET /v1/by_list%5B%22a%2Fb%22%5D?after=1%2C2&q=a+b HTTP/1.1\r\nHost: x\r\n\r\n")
      let first = client.read(until: #"after=1,2,q=a b "#)
      #expect(first.hasPrefix("HTTP/1.1 200 OK\r\n"))
      #expect(first.contains(#"GET ["v1", "by_list[\"a/b\"]"]"#))
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
      #expect(client.read(until: "hello").hasSuffix("POST []  hello"))
    }
  }

  @Test func `pipelined requests are answered in order`() async throws {
    try await withServer(handler: echo) { server in
      let client = RawClient(port: server.boundPort)
      client.send(
        (0..<50).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined()
          + "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      let all = client.read()
      let paths = all.split(separator: "GET [\"").dropFirst().map { $0.prefix { $0 != "\"" } }
      #expect(paths == (0..<50).map { "\($0)" } + ["last"])
    }
  }

  @Test func `a chunked body arrives whole and a streamed one goes out in chunks`() async throws {
    try await withServer { _ in
    } handler: { request, responder in
      guard let writer = try? await responder.start(status: 200) else { return }
      for _ in 0..<3 { try? await writer.write(SharedBytes(request.body)) }
      await writer.finish()
    } _: { server in
      let client = RawClient(port: server.boundPort)
      client.send(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
          + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\n")
      let response = client.read(until: "0\r\n\r\n")
      #expect(response.contains("transfer-encoding: chunked\r\n"))
      #expect(response.hasSuffix("\r\n\r\n5\r\nabcde\r\n5\r\nabcde\r\n5\r\nabcde\r\n0\r\n\r\n"))
    }
  }

  @Test func `HEAD gets the head alone`() async throws {
    try await withServer(handler: echo) { server in
      let client = RawClient(port: server.boundPort)
      client.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      let response = client.read()
      #expect(response.contains("content-length: 9\r\n"))
      #expect(response.hasSuffix("\r\n\r\n"))
    }
  }

  @Test func `HTTP 1.0 gets a stream without chunks that ends with the connection`() async throws {
    try await withServer { _ in
    } handler: { _, responder in
      let writer = try? await responder.start(status: 200)
      try? await writer?.write(Array("line\n".utf8))
      await writer?.finish()
    } _: { server in
      let client = RawClient(port: server.boundPort)
      client.send("GET / HTTP/1.0\r\n\r\n")
      #expect(client.read().hasSuffix("\r\n\r\nline\n"))
    }
  }

  @Test func `a client that expects it is told to continue`() async throws {
    try await withServer(handler: echo) { server in
      let client = RawClient(port: server.boundPort)
      client.send("PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
      #expect(client.read(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
      client.send("ok")
      #expect(client.read(until: "ok").hasPrefix("HTTP/1.1 200 OK\r\n"))
    }
  }

  @Test(
    arguments: [
      ("GET /a//b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
      ("GET /a/%2e%2E/b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
      ("GET /a%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
      ("GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
      ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
      ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n", 413),
      ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n", 413),
      ("GET / HTTP/1.1\r\nHost: x\r\nX: \(String(repeating: "a", count: 3000))\r\n\r\n", 431),
      ("GET /\(String(repeating: "a", count: 3000)) HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    ])
  func `a request outside the limits never reaches the handler`(
    request: String, status: Int
  ) async throws {
    try await withServer {
      $0.maxBodyBytes = 1000
      $0.maxHeaderBytes = 2000
    } handler: { _, responder in
      try? await responder.respond(status: 200)
    } _: { server in
      let client = RawClient(port: server.boundPort)
      client.send(request)
      let response = client.read()
      #expect(response.hasPrefix("HTTP/1.1 \(status) "))
      #expect(response.contains("{\"error\":{\"code\":\"SLUICE_HTTP_"))
    }
  }

  @Test func `a large body that is refused does not reset the refusal`() async throws {
    try await withServer {
      $0.maxBodyBytes = 1000
    } handler: { _, responder in
      try? await responder.respond(status: 200)
    } _: { server in
      let transport = CurlTransport()
      let response = try await transport.send(
        TransportRequest(
          method: "POST", url: "http://127.0.0.1:\(server.boundPort)/",
          body: Array(repeating: 0, count: 400_000)))
      #expect(response.status == 413)
    }
  }

  @Test func `a head that trickles in is given up`() async throws {
    try await withServer {
      $0.headTimeout = .milliseconds(200)
    } handler: { _, responder in
      try? await responder.respond(status: 200)
    } _: { server in
      let client = RawClient(port: server.boundPort)
      client.send("GET / HT")
      let start = ContinuousClock.now
      #expect(client.read().hasPrefix("HTTP/1.1 408 "))
      #expect(start.duration(to: .now) < .seconds(3))
      let silent = RawClient(port: server.boundPort)
      #expect(silent.read() == "")
    }
  }

  @Test func `an idle connection is closed`() async throws {
    try await withServer {
      $0.idleTimeout = .milliseconds(200)
    } handler: { _, responder in
      try? await responder.respond(status: 204)
    } _: { server in
      let client = RawClient(port: server.boundPort)
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      let response = client.read()
      #expect(response.hasPrefix("HTTP/1.1 204 No Content\r\n"))
      #expect(!response.contains("content-length"))
    }
  }

  @Test func `a connection beyond the limit is answered 503`() async throws {
    try await withServer {
      $0.maxConnections = 2
    } handler: { _, responder in
      try? await responder.respond(status: 200)
    } _: { server in
      let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
      let first = RawClient(port: server.boundPort)
      let second = RawClient(port: server.boundPort)
      first.send(request)
      second.send(request)
      #expect(first.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
      #expect(second.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
      let third = RawClient(port: server.boundPort)
      third.send(request)
      let response = third.read()
      #expect(response.hasPrefix("HTTP/1.1 503 "))
      #expect(response.contains("retry-after: 1\r\n"))
      withExtendedLifetime((first, second)) {}
    }
  }

  @Test func `a reader that stalls blocks the writer, bounded, and is closed`() async throws {
    let written = Atomic<Int>(0)
    let peak = Atomic<Int>(0)
    let isGone = Atomic<Bool>(false)
    try await withServer {
      $0.sendQueueLimit = 256 << 10
      $0.slowReaderTimeout = .milliseconds(400)
    } handler: { _, responder in
      do {
        let writer = try await responder.start(status: 200)
        let page = SharedBytes(Array(repeating: 97, count: 64 << 10))
        while true {
          try await writer.write(page)
          written.add(page.count, ordering: .relaxed)
          peak.max(writer.queuedBytes, ordering: .relaxed)
        }
      } catch {
        isGone.store(error is HTTPClientGone, ordering: .relaxed)
      }
    } _: { server in
      let client = RawClient(port: server.boundPort, receiveBuffer: 8 << 10)
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(await eventually { isGone.load(ordering: .relaxed) })
      #expect(peak.load(ordering: .relaxed) <= 256 << 10)
      #expect(written.load(ordering: .relaxed) < 4 << 20)
      #expect(client.isClosedByPeer())
    }
  }

  @Test func `a reader that is slow but reads gets everything`() async throws {
    try await withServer {
      $0.sendQueueLimit = 64 << 10
    } handler: { _, responder in
      let writer = try? await responder.start(status: 200)
      for number in 0..<100 {
        try? await writer?.write(Array(repeating: UInt8(number), count: 50_000))
      }
      await writer?.finish()
    } _: { server in
      let transport = CurlTransport(CurlTransportConfiguration(receiveBuffer: 32 << 10))
      let response = try await transport.send(
        TransportRequest(url: "http://127.0.0.1:\(server.boundPort)/"))
      var received: [UInt8] = []
      for try await chunk in response.body {
        #expect(chunk.count <= 160 << 10)
        if received.count < 1 << 20 { try await Task.sleep(for: .milliseconds(2)) }
        received += chunk
      }
      #expect(received.count == 5_000_000)
      #expect(received.enumerated().allSatisfy { $1 == UInt8($0 / 50_000) })
    }
  }

  @Test func `a client that leaves is noticed while nothing is written`() async throws {
    let events = Mutex<[String]>([])
    try await withServer { _ in
    } handler: { _, responder in
      guard let writer = try? await responder.start(status: 200) else { return }
      await writer.onClose { events.withLock { $0.append("closed") } }
      try? await Task.sleep(for: .seconds(30))
      events.withLock { $0.append(Task.isCancelled ? "cancelled" : "slept") }
    } _: { server in
      do {
        let client = RawClient(port: server.boundPort)
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = client.read(until: "\r\n\r\n")
      }
      #expect(await eventually { events.withLock { $0.count == 2 } })
      #expect(events.withLock { $0 } == ["closed", "cancelled"])
    }
  }

  @Test func `a handler that gives no answer gives 500, and one that stops midway is cut off`()
    async throws
  {
    try await withServer { _ in
    } handler: { request, responder in
      guard request.path == "/cut" else { return }
      let writer = try? await responder.start(status: 200)
      try? await writer?.write([97])
    } _: { server in
      let client = RawClient(port: server.boundPort)
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.read().hasPrefix("HTTP/1.1 500 "))
      let other = RawClient(port: server.boundPort)
      other.send("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(!other.read().hasSuffix("0\r\n\r\n"))
    }
  }

  @Test func `a header cannot write a line of its own`() async throws {
    try await withServer { _ in
    } handler: { _, responder in
      do {
        try await responder.respond(status: 200, headers: ["x": "a\r\nset-cookie: b"])
      } catch {
        try? await responder.respond(status: 418)
      }
    } _: { server in
      let client = RawClient(port: server.boundPort)
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 418 "))
    }
  }

  @Test func `a graceful stop lets the response under way end and refuses new connections`()
    async throws
  {
    let begun = Atomic<Bool>(false)
    let server = HTTPServer(loop: EventLoop(name: "http")) { _, responder in
      guard let writer = try? await responder.start(status: 200) else { return }
      begun.store(true, ordering: .relaxed)
      await StopSignal.wait()
      try? await writer.write(Array("goodbye".utf8))
      await writer.finish()
    }
    let stop = StopSignal()
    try await server.start()
    async let run: Void = StopSignal.$current.withValue(stop) { try await server.run() }
    let client = RawClient(port: server.boundPort)
    let idle = RawClient(port: server.boundPort)
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(await eventually { begun.load(ordering: .relaxed) })
    stop.request()
    #expect(client.read().hasSuffix("\r\n\r\n7\r\ngoodbye\r\n0\r\n\r\n"))
    #expect(idle.read() == "")
    try await run
  }

  @Test func `a Unix socket serves, and its file goes with the server`() async throws {
    let path = "/tmp/sluice-http-\(getpid()).sock"
    try await withServer {
      $0.address = .unixSocket(path)
    } handler: { request, responder in
      await echo(request, responder)
    } _: { _ in
      let transport = CurlTransport(CurlTransportConfiguration(unixSocket: path))
      let response = try await transport.send(TransportRequest(url: "http://local/a"))
      #expect(try await response.body.collect(upTo: 100) == Array("GET [\"a\"]  ".utf8))
    }
    #expect(access(path, F_OK) != 0)
  }

  @Test func `a port in use is said by name`() async throws {
    try await withServer(handler: echo) { server in
      let port = server.boundPort
      let second = HTTPServer(
        HTTPServerConfiguration(address: .tcp(host: "127.0.0.1", port: port)),
        loop: EventLoop(name: "second"), handler: echo)
      await #expect(throws: HTTPListenError.self) { try await second.start() }
    }
  }
}
