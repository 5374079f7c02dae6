/// The bytes of a response as they arrive. One consumer reads it once.
///
/// Nothing more is read from the network while a bounded amount waits here: not asking for the next
/// chunk is the back pressure. Dropping the last copy of the body ends the transfer.
package struct TransportBody: AsyncSequence, Sendable {
  package typealias Element = [UInt8]

  fileprivate final class Source: Sendable {
    let pull: @Sendable () async throws -> [UInt8]?
    let drop: @Sendable () -> Void

    init(
      pull: @escaping @Sendable () async throws -> [UInt8]?, drop: @escaping @Sendable () -> Void
    ) {
      self.pull = pull
      self.drop = drop
    }

    deinit { drop() }
  }

  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let source: Source

    package mutating func next() async throws -> [UInt8]? {
      try await source.pull()
    }
  }

  private let source: Source

  /// A body that asks `pull` for each chunk, until nil; `drop` is called once nobody can ask any more.
  package init(
    pull: @escaping @Sendable () async throws -> [UInt8]?,
    drop: @escaping @Sendable () -> Void = {}
  ) {
    source = Source(pull: pull, drop: drop)
  }

  package func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(source: source)
  }

  /// All that is left of the body; throws `TransportError.tooLarge` when that exceeds `limit` bytes.
  package func collect(upTo limit: Int) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    while let chunk = try await source.pull() {
      guard bytes.count + chunk.count <= limit else {
        throw TransportError(.tooLarge, "the body is longer than \(limit) bytes")
      }
      bytes += chunk
    }
    return bytes
  }
}
