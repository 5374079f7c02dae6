internal import CLibevent
internal import Glibc

/// Why the server cannot listen.
package struct HTTPListenError: Error, Sendable, CustomStringConvertible {
  package let description: String
}

/// A listening socket, TCP or Unix.
final class HTTPListener: CustomStringConvertible {
  let descriptor: Int32
  /// 0 for a Unix socket.
  let port: Int
  let description: String
  private let path: String?

  init(_ configuration: HTTPServerConfiguration) throws {
    switch configuration.address {
    case .tcp(let host, let port):
      path = nil
      descriptor = try Self.listen(host: host, port: port, configuration)
      self.port = Self.port(of: descriptor)
      description = "\(host):\(self.port)"
    case .unixSocket(let path):
      self.path = path
      descriptor = try Self.listen(path: path, configuration)
      port = 0
      description = path
    }
  }

  func close() {
    Glibc.close(descriptor)
    if let path { unlink(path) }
  }

  /// The next connection, not blocking; nil when none waits, a negative descriptor when there is no
  /// descriptor left for one.
  func accept() -> (descriptor: Int32, address: String)? {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let accepted = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.accept(descriptor, $0, &length)
      }
    }
    guard accepted >= 0 else {
      return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) ? (-1, "") : nil
    }
    evutil_make_socket_nonblocking(accepted)
    evutil_make_socket_closeonexec(accepted)
    guard path == nil else { return (accepted, "") }
    var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = getnameinfo($0, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
      }
    }
    let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return (accepted, String(decoding: bytes, as: UTF8.self))
  }

  private static func listen(
    host: String, port: Int, _ configuration: HTTPServerConfiguration
  ) throws -> Int32 {
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host.isEmpty ? nil : host, String(port), &hints, &found)
    guard result == 0, let found else {
      throw HTTPListenError(description: "\(host) has no address to listen at")
    }
    defer { freeaddrinfo(found) }
    let name = "\(host):\(port)"
    let descriptor = try socket(found.pointee.ai_family, configuration)
    set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
    set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    guard bind(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0 else {
      throw failure("bind", name, closing: descriptor)
    }
    return try listening(descriptor, name)
  }

  private static func listen(
    path: String, _ configuration: HTTPServerConfiguration
  ) throws -> Int32 {
    var address = sockaddr_un()
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard !path.isEmpty, path.utf8.count < capacity else {
      throw HTTPListenError(description: "a Unix socket's path has 1 to \(capacity - 1) bytes")
    }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let descriptor = try socket(AF_UNIX, configuration)
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        if bind(descriptor, address, size) == 0 { return true }
        // In use: replaced only when nobody answers behind it.
        guard errno == EADDRINUSE, let probe = try? socket(AF_UNIX, configuration) else {
          return false
        }
        defer { Glibc.close(probe) }
        guard connect(probe, address, size) != 0, errno == ECONNREFUSED else {
          errno = EADDRINUSE
          return false
        }
        unlink(path)
        return bind(descriptor, address, size) == 0
      }
    }
    guard isBound else { throw failure("bind", path, closing: descriptor) }
    return try listening(descriptor, path)
  }

  /// The send buffer's size passes on to what is accepted.
  private static func socket(
    _ family: Int32, _ configuration: HTTPServerConfiguration
  ) throws -> Int32 {
    let descriptor = Glibc.socket(family, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw HTTPListenError(description: "no socket can be made") }
    evutil_make_socket_nonblocking(descriptor)
    evutil_make_socket_closeonexec(descriptor)
    set(descriptor, SOL_SOCKET, SO_SNDBUF, Int32(configuration.sendBuffer))
    return descriptor
  }

  private static func listening(_ descriptor: Int32, _ name: String) throws -> Int32 {
    guard Glibc.listen(descriptor, 1024) == 0 else {
      throw failure("listen", name, closing: descriptor)
    }
    return descriptor
  }

  private static func failure(
    _ call: String, _ name: String, closing descriptor: Int32
  ) -> HTTPListenError {
    let reason = String(cString: strerror(errno))
    Glibc.close(descriptor)
    return HTTPListenError(description: "cannot \(call) \(name): \(reason)")
  }

  private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  private static func port(of descriptor: Int32) -> Int {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = getsockname(descriptor, $0, &length)
      }
      // The port is at the same place in both families.
      return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        Int(UInt16(bigEndian: $0.pointee.sin_port))
      }
    }
  }
}
