#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Cuts arriving bytes into lines, whatever the chunks they arrive in.
package struct LineSplitter {
  private var buffer: [UInt8] = []
  private var start = 0
  /// How far the buffer is known to hold no line end.
  private var searched = 0
  private let limit: Int

  /// A line longer than `limit` bytes is refused. A gateway's longest is 97 MiB: of one row that has 32 MiB and nothing
  /// but characters whose escapes are three times as long.
  package init(limit: Int = 128 << 20) { self.limit = limit }

  /// Bytes of a line that has not ended yet.
  package var pendingBytes: Int { buffer.count - start }

  package mutating func append(_ chunk: some Collection<UInt8>) {
    if start > 0 {
      buffer.removeSubrange(0..<start)
      searched -= start
      start = 0
    }
    buffer.append(contentsOf: chunk)
  }

  /// The next whole line without its end, or nil until more bytes have come. Empty lines are passed over.
  package mutating func next() throws(ProtocolError) -> [UInt8]? {
    while true {
      guard let end = lineEnd() else {
        searched = buffer.count
        if pendingBytes > limit {
          throw WireDirection.line.error(.size, "A line is longer than \(limit) bytes.")
        }
        return nil
      }
      let line = start..<end
      start = end + 1
      searched = start
      guard line.count <= limit else {
        throw WireDirection.line.error(.size, "A line is longer than \(limit) bytes.")
      }
      if !line.isEmpty { return Array(buffer[line]) }
    }
  }

  private func lineEnd() -> Int? {
    buffer.withUnsafeBytes { bytes in
      guard searched < bytes.count, let base = bytes.baseAddress,
        let found = memchr(base + searched, 0x0A, bytes.count - searched)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }
}
