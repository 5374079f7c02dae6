import Foundation

/// One HTTP/1.1 exchange over a plain socket, written from the RFC and not from the project's own client.
///
/// Used on one thread at a time. Raw request targets go out as they are, and reading can be as slow as a test wants.
final class WireConnection {
  struct Closed: Error, CustomStringConvertible {
    let description: String
  }

  private(set) var status = 0
  private(set) var headers: [String: String] = [:]
  private(set) var bytesRead = 0
  private let descriptor: Int32
  private let isCancelled: () -> Bool
  private var buffer: [UInt8] = []
  private var consumed = 0
  private var chunkLeft = 0
  private var isChunked = false
  private var lengthLeft: Int?
  private var isAtEnd = false
  private var isChunkEndDue = false

  init(
    port: Int, receiveBuffer: Int32? = nil, isCancelled: @escaping () -> Bool = { false }
  ) throws {
    self.isCancelled = isCancelled
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Closed(description: "socket: errno \(errno)") }
    if var size = receiveBuffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    // Every property is set by now, so `deinit` closes the descriptor of a failed connection too.
    guard connected == 0 else { throw Closed(description: "connect: errno \(errno)") }
  }

  deinit { close(descriptor) }

  func send(
    _ method: String, _ target: String, token: String? = nil, body: String? = nil,
    headers extra: [(String, String)] = []
  ) throws {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
    if let token { head += "Authorization: Bearer \(token)\r\n" }
    if let body {
      head += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
    }
    for (name, value) in extra { head += "\(name): \(value)\r\n" }
    let bytes = Array((head + "\r\n" + (body ?? "")).utf8)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Closed(description: "send: errno \(errno)") }
      sent += count
    }
  }

  /// Sends bytes as they are, until the peer has heard enough.
  func sendAsMuchAsIsTaken(_ bytes: [UInt8]) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      sent += count
    }
  }

  func readHead() throws {
    guard let first = try rawLine() else { throw Closed(description: "closed before the head") }
    let parts = first.split(separator: " ")
    guard parts.count >= 2, let status = Int(parts[1]) else {
      throw Closed(description: "not a status line")
    }
    self.status = status
    while let line = try rawLine(), !line.isEmpty {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[line[..<colon].lowercased()] = line[line.index(after: colon)...]
        .trimmingCharacters(in: .whitespaces)
    }
    isChunked = headers["transfer-encoding"]?.lowercased() == "chunked"
    lengthLeft = isChunked ? nil : headers["content-length"].flatMap { Int($0) }
  }

  /// The next line of the body without its end, or nil after the last one.
  func bodyLine() throws -> [UInt8]? {
    var line: [UInt8] = []
    while true {
      guard let part = try bodyBytes() else {
        guard line.isEmpty else { throw Closed(description: "the body ends inside a line") }
        return nil
      }
      if let end = part.firstIndex(of: 0x0a) {
        line += part[..<end]
        giveBack(part.endIndex - end - 1)
        return line
      }
      line += part
    }
  }

  func wholeBody() throws -> [UInt8] {
    var body: [UInt8] = []
    while let part = try bodyBytes() { body += part }
    return body
  }

  /// Takes up to `limit` bytes off the socket without looking at them; false when the peer has closed.
  func drain(_ limit: Int) -> Bool {
    var scratch = [UInt8](repeating: 0, count: limit)
    let count = recv(descriptor, &scratch, limit, Int32(MSG_DONTWAIT))
    if count > 0 { bytesRead += count }
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))
  }

  /// Whether the peer has closed or reset, found out without reading.
  var isPeerGone: Bool {
    let halfClosed: Int16 = 0x2000  // POLLRDHUP, which Glibc's module leaves out
    var waiting = pollfd(fd: descriptor, events: halfClosed, revents: 0)
    return poll(&waiting, 1, 0) > 0
      && waiting.revents & (halfClosed | Int16(POLLHUP | POLLERR)) != 0
  }

  // MARK: - Bytes

  private func bodyBytes() throws -> ArraySlice<UInt8>? {
    if isAtEnd { return nil }
    if isChunked {
      if chunkLeft == 0 {
        guard let size = try rawLine(), let count = Int(size, radix: 16) else {
          throw Closed(description: "cut between chunks")
        }
        if count == 0 {
          _ = try rawLine()
          isAtEnd = true
          return nil
        }
        chunkLeft = count
      }
      guard try fill() else { throw Closed(description: "cut inside a chunk") }
      let count = min(chunkLeft, buffer.count - consumed)
      chunkLeft -= count
      return taken(count)
    }
    if let left = lengthLeft {
      if left == 0 { return nil }
      guard try fill() else { throw Closed(description: "cut inside the body") }
      let count = min(left, buffer.count - consumed)
      lengthLeft = left - count
      return taken(count)
    }
    guard try fill() else {
      isAtEnd = true
      return nil
    }
    return taken(buffer.count - consumed)
  }

  private func taken(_ count: Int) -> ArraySlice<UInt8> {
    let slice = buffer[consumed..<(consumed + count)]
    consumed += count
    isChunkEndDue = isChunked && chunkLeft == 0
    return slice
  }

  private func giveBack(_ count: Int) {
    guard count > 0 else { return }
    consumed -= count
    if isChunked {
      chunkLeft += count
      isChunkEndDue = false
    } else if let left = lengthLeft {
      lengthLeft = left + count
    }
  }

  private func rawLine() throws -> String? {
    if isChunkEndDue {
      isChunkEndDue = false
      guard try rawLine() == "" else { throw Closed(description: "a chunk without its end") }
    }
    var line: [UInt8] = []
    while try fill() {
      if let end = buffer[consumed...].firstIndex(of: 0x0a) {
        line += buffer[consumed..<end]
        consumed = end + 1
        if line.last == 0x0d { line.removeLast() }
        return String(decoding: line, as: UTF8.self)
      }
      line += buffer[consumed...]
      consumed = buffer.count
    }
    if line.isEmpty { return nil }
    throw Closed(description: "cut inside a line")
  }

  private func fill() throws -> Bool {
    if consumed < buffer.count { return true }
    buffer.removeAll(keepingCapacity: true)
    consumed = 0
    while true {
      if isCancelled() { throw Closed(description: "cancelled") }
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let ready = poll(&waiting, 1, 100)
      if ready == 0 || (ready < 0 && errno == EINTR) { continue }
      let count = withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 1) { scratch in
        let count = recv(descriptor, scratch.baseAddress, scratch.count, 0)
        if count > 0 { buffer += scratch[..<count] }
        return count
      }
      if count < 0, errno == EINTR { continue }
      if count < 0 { throw Closed(description: "recv: errno \(errno)") }
      bytesRead += count
      return count > 0
    }
  }
}
