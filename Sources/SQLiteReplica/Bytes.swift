#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Whether both hold the same bytes.
@inline(__always)
func equal(_ left: UnsafeBufferPointer<UInt8>, _ right: [UInt8]) -> Bool {
  guard left.count == right.count, let base = left.baseAddress else {
    return right.isEmpty && left.isEmpty
  }
  return right.withUnsafeBufferPointer { memcmp(base, $0.baseAddress ?? base, left.count) } == 0
}

/// Whether `left` sorts after `right` in SQLite's BINARY collation.
@inline(__always)
func isAfter(_ left: UnsafeBufferPointer<UInt8>, _ right: [UInt8]) -> Bool {
  order(left, right) > 0
}

/// Whether `left` sorts before `right` in SQLite's BINARY collation.
@inline(__always)
func isBefore(_ left: UnsafeBufferPointer<UInt8>, _ right: [UInt8]) -> Bool {
  order(left, right) < 0
}

@inline(__always)
private func order(_ left: UnsafeBufferPointer<UInt8>, _ right: [UInt8]) -> Int {
  guard let base = left.baseAddress else { return -right.count }
  let order = right.withUnsafeBufferPointer {
    memcmp(base, $0.baseAddress ?? base, min(left.count, $0.count))
  }
  return order != 0 ? Int(order) : left.count - right.count
}
