internal import Glibc
internal import Synchronization

/// The write end of the pipe that the signal handler writes numbers to.
private let signalPipe = Atomic<Int32>(-1)

/// Signals of the process as an asynchronous sequence, from creation to `restore()`.
///
/// One at a time: a second one takes the signals over.
package final class ProcessSignals: Sendable {
  /// SIGTERM and SIGINT.
  package static let termination = [SIGTERM, SIGINT]

  /// The numbers, as they come.
  package let numbers: AsyncStream<Int32>

  private let signals: [Int32]
  private let writer: Int32

  package init(_ signals: [Int32]) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Int32.self, bufferingPolicy: .bufferingOldest(16))
    numbers = stream
    var ends: [Int32] = [-1, -1]
    guard !signals.isEmpty, pipe(&ends) == 0 else {
      self.signals = []
      writer = -1
      continuation.finish()
      return
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    self.signals = signals
    writer = ends[1]
    signalPipe.store(writer, ordering: .releasing)
    let reader = SignalReader(descriptor: ends[0], continuation: continuation)
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<SignalReader>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      Unmanaged.passRetained(reader).toOpaque())
    precondition(result == 0, "no thread for signals")
    pthread_detach(thread)
    for number in signals {
      var action = sigaction()
      // Only what is safe in a handler: an atomic load and a write, errno put back.
      action.__sigaction_handler.sa_handler = { number in
        let saved = errno
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(signalPipe.load(ordering: .acquiring), &byte, 1)
        errno = saved
      }
      action.sa_flags = SA_RESTART
      sigaction(number, &action, nil)
    }
  }

  /// Gives the signals their default meaning back and ends `numbers`.
  package func restore() {
    guard writer >= 0 else { return }
    for number in signals { signal(number, SIG_DFL) }
    _ = signalPipe.compareExchange(
      expected: writer, desired: -1, ordering: .acquiringAndReleasing)
    close(writer)
  }
}

private final class SignalReader: Sendable {
  let descriptor: Int32
  let continuation: AsyncStream<Int32>.Continuation

  init(descriptor: Int32, continuation: AsyncStream<Int32>.Continuation) {
    self.descriptor = descriptor
    self.continuation = continuation
  }

  func run() {
    while true {
      var byte: UInt8 = 0
      let count = read(descriptor, &byte, 1)
      if count == 1 {
        continuation.yield(Int32(byte))
      } else if count == 0 || errno != EINTR {
        break
      }
    }
    close(descriptor)
    continuation.finish()
  }
}
