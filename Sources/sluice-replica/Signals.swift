import Dispatch

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The signals that ask a process to end.
enum Signals {
  /// Returns when SIGINT or SIGTERM comes, or the task is cancelled.
  static func wait() async {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Int32.self, bufferingPolicy: .bufferingOldest(1))
    let sources = [SIGINT, SIGTERM].map { signal in
      let source = DispatchSource.makeSignalSource(signal: signal, queue: .global())
      source.setEventHandler { @Sendable in continuation.yield(signal) }
      source.activate()
      return source
    }
    for await _ in stream { break }
    for source in sources { source.cancel() }
  }
}
