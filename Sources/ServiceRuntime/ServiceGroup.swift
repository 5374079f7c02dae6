/// Why a `ServiceGroup` ended before it was asked to.
package struct ServiceFailure: Error, CustomStringConvertible {
  package let service: String
  /// Nil when the service returned unasked.
  package let underlying: (any Error)?

  package var description: String {
    guard let underlying else { return "service \(service) ended unasked" }
    return "service \(service) failed: \(underlying)"
  }
}

/// Runs services until a signal or a failure, and then stops them in reverse order.
///
/// Each gets its `StopSignal` when those after it have returned. All of them together have
/// `stopTimeout`; then, or at a second signal, what still runs is cancelled.
package struct ServiceGroup: Sendable {
  private let services: [any Service]
  private let signals: [Int32]
  private let stopTimeout: Duration
  private let observer: any Observer

  /// - Parameter signals: the numbers of the signals to stop at; empty leaves signals alone.
  package init(
    _ services: [any Service], signals: [Int32] = ProcessSignals.termination,
    stopTimeout: Duration = .seconds(20), observer: any Observer = NoObserver()
  ) {
    self.services = services
    self.signals = signals
    self.stopTimeout = stopTimeout
    self.observer = observer
  }

  private enum Event: Sendable {
    case ended(Int, (any Error)?)
    case signal(Int32)
    case asked
    case timeout
  }

  /// Returns after a graceful stop; throws `ServiceFailure` when a service failed or ended unasked.
  ///
  /// An outer `StopSignal.current` asks this group to stop too; cancelling the task cancels the services.
  package func run() async throws {
    let received = ProcessSignals(signals)
    let stops = services.map { _ in StopSignal() }
    let outer = StopSignal.current
    let (events, continuation) = AsyncStream.makeStream(of: Event.self)
    var failure: ServiceFailure?

    await withTaskGroup(of: Void.self) { group in
      for (index, service) in services.enumerated() {
        group.addTask {
          var failure: (any Error)?
          do {
            try await StopSignal.$current.withValue(stops[index]) { try await service.run() }
          } catch {
            failure = error
          }
          continuation.yield(.ended(index, failure))
        }
      }
      group.addTask {
        for await number in received.numbers { continuation.yield(.signal(number)) }
      }
      group.addTask { [outer] in
        guard let outer else { return }
        await outer.wait()
        if outer.isRequested { continuation.yield(.asked) }
      }

      var running = Set(services.indices)
      var isStopping = false
      for await event in events {
        switch event {
        case .ended(let index, let error):
          running.remove(index)
          let isExpected = stops[index].isRequested || Task.isCancelled
          if !isExpected || (error != nil && !(error is CancellationError)) {
            failure = failure ?? ServiceFailure(service: services[index].name, underlying: error)
          }
          observer.observe(.info("service.ended", ["service": .string(services[index].name)]))
        case .signal(let number):
          observer.observe(.info("process.signal", ["signal": .int(Int(number))]))
          if isStopping { group.cancelAll() }
        case .asked: break
        case .timeout:
          observer.observe(.warning("process.stop_timeout", ["running": .int(running.count)]))
          group.cancelAll()
        }
        if !isStopping {
          isStopping = true
          group.addTask { [stopTimeout] in
            try? await Task.sleep(for: stopTimeout)
            if !Task.isCancelled { continuation.yield(.timeout) }
          }
        }
        guard let last = running.max() else { break }
        stops[last].request()
      }
      group.cancelAll()
    }
    received.restore()
    if let failure { throw failure }
  }
}
