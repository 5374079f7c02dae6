import Glibc

/// A blocking socket to a server on this machine: what a test writes is what goes out.
final class RawClient {
  private let descriptor: Int32

  /// - Parameter receiveBuffer: a small one makes a stalled reader felt soon.
  init(port: Int, receiveBuffer: Int32? = nil) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    if var size = receiveBuffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    var timeout = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    precondition(result == 0, "no connection to port \(port)")
  }

  deinit { close(descriptor) }

  func send(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count <= 0 { return }
      rest = rest.dropFirst(count)
    }
  }

  /// What arrives, up to and with `end`; or all until the peer closes.
  func read(until end: String? = nil) -> String {
    var received: [UInt8] = []
    let end = end.map { Array($0.utf8) }
    while true {
      if let end, received.count >= end.count, received.suffix(end.count).elementsEqual(end) {
        break
      }
      var bytes = [UInt8](repeating: 0, count: end == nil ? 65_536 : 1)
      let count = recv(descriptor, &bytes, bytes.count, 0)
      if count <= 0 { break }
      received += bytes.prefix(count)
    }
    return String(decoding: received, as: UTF8.self)
  }

  /// Whether the peer closes within the receive timeout, whatever it sends before.
  func isClosedByPeer() -> Bool {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(descriptor, &bytes, bytes.count, 0)
      if count == 0 || count < 0 && errno == ECONNRESET { return true }
      if count < 0 { return false }
    }
  }
}
