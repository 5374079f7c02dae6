import EventLoop
import Glibc
import HTTPServer
import HTTPTransport
import Synchronization
import Testing

/// Runs `body` with the URL of a server that answers so.
private func withServer(
  _ handler: @escaping @Sendable (HTTPRequest, HTTPResponder) async -> Void,
  _ body: (String) async throws -> Void
) async throws {
  let server = HTTPServer(
    HTTPServerConfiguration(drainTimeout: .milliseconds(50)), loop: EventLoop(name: "http"),
    handler: handler)
  try await server.start()
  do {
    try await body("http://127.0.0.1:\(server.boundPort)")
  } catch {
    await server.stop()
    throw error
  }
  await server.stop()
}

/// The error's code, or nil when there is another outcome.
private func code(_ body: () async throws -> Void) async -> TransportError.Code? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? TransportError)?.code
  }
}

@Suite(.serialized, .timeLimit(.minutes(1))) struct CurlTransportTests {
  @Test func `method, headers and body arrive, and status, headers and body come back`()
    async throws
  {
    let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void = { request, responder in
      let text =
        "\(request.method) \(request.headers["x-a"] ?? "-") \(request.headers["x-b"] ?? "-")|"
      try? await responder.respond(
        status: 418, headers: ["X-Colour": "a: b"], body: Array(text.utf8) + request.body)
    }
    try await withServer(handler) { url in
      let transport = CurlTransport()
      for (method, body) in [("GET", nil), ("PUT", [0, 255]), ("POST", []), ("DELETE", nil)]
        as [(String, [UInt8]?)]
      {
        let response = try await transport.send(
          TransportRequest(
            method: method, url: url + "/", headers: [("X-A", "1"), ("x-b", "")], body: body))
        #expect(response.status == 418)
        #expect(response.header("x-colour") == "a: b")
        let received = try await response.body.collect(upTo: 1000)
        #expect(received == Array("\(method) 1 |".utf8) + (body ?? []))
      }
    }
  }

  @Test func `the head comes before the body, and each chunk as it is sent`() async throws {
    let goOn = Atomic<Int>(0)
    let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void = { _, responder in
      let writer = try? await responder.start(status: 200)
      for number in 1...3 {
        while goOn.load(ordering: .acquiring) < number {
          try? await Task.sleep(for: .milliseconds(1))
        }
        try? await writer?.write([UInt8(number)])
      }
      await writer?.finish()
    }
    try await withServer(handler) { url in
      let response = try await CurlTransport().send(TransportRequest(url: url))
      goOn.store(1, ordering: .releasing)
      var expected: UInt8 = 1
      for try await chunk in response.body {
        #expect(chunk == [expected])
        expected += 1
        goOn.add(1, ordering: .acquiringAndReleasing)
      }
      #expect(expected == 4)
    }
  }

  @Test func `a consumer that waits stops the sender`() async throws {
    let sent = Atomic<Int>(0)
    let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void = { _, responder in
      let writer = try? await responder.start(status: 200)
      let page = SharedBytes(Array(repeating: 1, count: 64 << 10))
      for _ in 0..<1000 {
        guard (try? await writer?.write(page)) != nil else { return }
        sent.add(page.count, ordering: .relaxed)
      }
      await writer?.finish()
    }
    try await withServer(handler) { url in
      let response = try await CurlTransport().send(TransportRequest(url: url))
      try await Task.sleep(for: .milliseconds(400))
      #expect(sent.load(ordering: .relaxed) < 16 << 20)
      var count = 0
      for try await chunk in response.body { count += chunk.count }
      #expect(count == 1000 * 64 << 10)
    }
  }

  @Test func `a body that is dropped or whose task is cancelled ends the exchange`() async throws {
    let gone = Atomic<Int>(0)
    let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void = { _, responder in
      let writer = try? await responder.start(status: 200)
      await writer?.onClose { gone.add(1, ordering: .relaxed) }
      try? await Task.sleep(for: .seconds(60))
    }
    try await withServer(handler) { url in
      let transport = CurlTransport()
      _ = try await transport.send(TransportRequest(url: url))
      let task = Task {
        let response = try await transport.send(TransportRequest(url: url))
        for try await _ in response.body {}
      }
      try await Task.sleep(for: .milliseconds(100))
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      for _ in 0..<500 where gone.load(ordering: .relaxed) < 2 {
        try await Task.sleep(for: .milliseconds(10))
      }
      #expect(gone.load(ordering: .relaxed) == 2)
    }
  }

  @Test func `silence, before the head and after, is an error of its own`() async throws {
    let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void = { request, responder in
      if request.path == "/head" {
        let writer = try? await responder.start(status: 200)
        try? await writer?.write([1])
      }
      try? await Task.sleep(for: .seconds(60))
    }
    try await withServer(handler) { url in
      let transport = CurlTransport(CurlTransportConfiguration(idleTimeout: .milliseconds(200)))
      #expect(await code { _ = try await transport.send(TransportRequest(url: url)) } == .idle)
      let response = try await transport.send(TransportRequest(url: url + "/head"))
      #expect(await code { _ = try await response.body.collect(upTo: 10) } == .idle)
    }
  }

  @Test func `a body that is cut off, is too long or takes too long is an error`() async throws {
    let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void = { request, responder in
      let writer = try? await responder.start(status: 200)
      try? await writer?.write([1, 2, 3])
      try? await Task.sleep(for: request.path == "/slow" ? .seconds(60) : .milliseconds(200))
    }
    try await withServer(handler) { url in
      let transport = CurlTransport()
      let cut = try await transport.send(TransportRequest(url: url))
      #expect(await code { _ = try await cut.body.collect(upTo: 10) } == .interrupted)
      let long = try await transport.send(TransportRequest(url: url))
      #expect(await code { _ = try await long.body.collect(upTo: 2) } == .tooLarge)
      let slow = try await transport.send(
        TransportRequest(url: url + "/slow", timeout: .milliseconds(200)))
      #expect(await code { _ = try await slow.body.collect(upTo: 10) } == .timedOut)
    }
  }

  @Test(
    arguments: [
      TransportRequest(url: "file:///etc/passwd"),
      TransportRequest(url: "ftp://127.0.0.1/"),
      TransportRequest(url: "http://127.0.0.1/a b"),
      TransportRequest(url: "http://127.0.0.1/", headers: [("a", "b\r\nc: d")]),
      TransportRequest(url: "http://127.0.0.1/", headers: [("a\r\nb", "c")]),
      TransportRequest(method: "GET /\r\n", url: "http://127.0.0.1/"),
    ])
  func `a request that is none is not sent`(request: TransportRequest) async {
    #expect(await code { _ = try await CurlTransport().send(request) } == .invalidRequest)
  }

  @Test func `nobody listening is told apart from a redirect, which is a response`() async throws {
    #expect(
      await code {
        _ = try await CurlTransport().send(TransportRequest(url: "http://127.0.0.1:1/"))
      } == .unreachable)
    let handler: @Sendable (HTTPRequest, HTTPResponder) async -> Void = { _, responder in
      try? await responder.respond(status: 302, headers: ["location": "/elsewhere"])
    }
    try await withServer(handler) { url in
      let response = try await CurlTransport().send(TransportRequest(url: url))
      #expect(response.status == 302)
    }
  }
}
