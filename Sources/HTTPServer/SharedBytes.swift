internal import CLibevent

/// Immutable bytes, encoded once and appended to any number of streams without copying.
///
/// `@unchecked`: the memory is written in `init` only.
package final class SharedBytes: @unchecked Sendable {
  private let storage: UnsafeMutableRawBufferPointer
  private let companion: (any Sendable)?

  /// The companion, if there is one, is kept for as long as the bytes.
  package init(_ bytes: [UInt8], keeping companion: (any Sendable)? = nil) {
    self.companion = companion
    storage = .allocate(byteCount: max(1, bytes.count), alignment: 1)
    count = bytes.count
    storage.copyBytes(from: bytes)
  }

  deinit { storage.deallocate() }

  package let count: Int

  package var isEmpty: Bool { count == 0 }

  package func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try body(UnsafeRawBufferPointer(rebasing: storage[..<count]))
  }

  /// Below this, a copy is cheaper than a reference.
  private static let copyLimit = 1024

  /// Appends the bytes; the buffer holds a reference to them until they are on the wire.
  func append(to buffer: OpaquePointer?) {
    guard count > Self.copyLimit else {
      evbuffer_add(buffer, storage.baseAddress, count)
      return
    }
    let reference = Unmanaged.passRetained(self)
    let result = evbuffer_add_reference(
      buffer, storage.baseAddress, count,
      { _, _, reference in
        guard let reference else { return }
        Unmanaged<SharedBytes>.fromOpaque(reference).release()
      }, reference.toOpaque())
    if result != 0 { reference.release() }
  }
}
