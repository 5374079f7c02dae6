import Glibc
import ServiceRuntime
import Synchronization
import Testing

/// Writes what it does into a shared list, and ends as it is told to.
private struct Recorded: Service {
  let name: String
  let log: Log
  var ending: Ending = .whenAsked

  enum Ending { case whenAsked, atOnce, byFailing, whenCancelled }

  final class Log: Sendable {
    private let entries = Mutex<[String]>([])
    func add(_ entry: String) { entries.withLock { $0.append(entry) } }
    var all: [String] { entries.withLock { $0 } }
  }

  struct Broken: Error {}

  func run() async throws {
    log.add("\(name) began")
    switch ending {
    case .whenAsked: await StopSignal.wait()
    case .atOnce: break
    case .byFailing: throw Broken()
    case .whenCancelled: try await Task.sleep(for: .seconds(60))
    }
    log.add("\(name) ended")
  }
}

@Suite(.serialized, .timeLimit(.minutes(1))) struct ServiceGroupTests {
  @Test func `services stop in reverse order, each after those behind it`() async throws {
    let log = Recorded.Log()
    let group = ServiceGroup(
      ["a", "b", "c"].map { Recorded(name: $0, log: log) }, signals: [])
    let stop = StopSignal()
    async let run: Void = StopSignal.$current.withValue(stop) { try await group.run() }
    while log.all.count < 3 { await Task.yield() }
    stop.request()
    try await run
    #expect(log.all.suffix(3) == ["c ended", "b ended", "a ended"])
  }

  @Test func `a service that fails or ends unasked stops the others and is named`() async {
    for ending in [Recorded.Ending.byFailing, .atOnce] {
      let log = Recorded.Log()
      let group = ServiceGroup(
        [Recorded(name: "a", log: log), Recorded(name: "b", log: log, ending: ending)],
        signals: [])
      let failure = await #expect(throws: ServiceFailure.self) { try await group.run() }
      #expect(failure?.service == "b")
      #expect((failure?.underlying is Recorded.Broken) == (ending == .byFailing))
      #expect(log.all.last == "a ended")
    }
  }

  @Test func `a service that does not stop in time is cancelled`() async throws {
    let log = Recorded.Log()
    let group = ServiceGroup(
      [Recorded(name: "a", log: log, ending: .whenCancelled)], signals: [],
      stopTimeout: .milliseconds(50))
    let stop = StopSignal()
    stop.request()
    try await StopSignal.$current.withValue(stop) { try await group.run() }
    #expect(log.all == ["a began"])
  }

  @Test func `a signal stops the group and has its default meaning afterwards`() async throws {
    let log = Recorded.Log()
    let group = ServiceGroup([Recorded(name: "a", log: log)], signals: [SIGUSR2])
    async let run: Void = group.run()
    while log.all.isEmpty { await Task.yield() }
    kill(getpid(), SIGUSR2)
    try await run
    #expect(log.all == ["a began", "a ended"])
    var action = sigaction()
    sigaction(SIGUSR2, nil, &action)
    #expect(action.__sigaction_handler.sa_handler == nil)
  }
}

@Suite(.timeLimit(.minutes(1))) struct StopSignalTests {
  @Test func `handlers are called once, at once when the request was before`() {
    let signal = StopSignal()
    let calls = Atomic<Int>(0)
    signal.onRequest { calls.add(1, ordering: .relaxed) }
    let removed = signal.onRequest { calls.add(100, ordering: .relaxed) }
    signal.removeHandler(removed)
    signal.request()
    signal.request()
    #expect(calls.load(ordering: .relaxed) == 1)
    signal.onRequest { calls.add(1, ordering: .relaxed) }
    #expect(calls.load(ordering: .relaxed) == 2)
  }

  @Test func `waiting ends with the task too`() async {
    let task = Task { await StopSignal().wait() }
    task.cancel()
    await task.value
  }

  @Test func `work to be cancelled at the request throws CancellationError then`() async {
    let signal = StopSignal()
    let work = StopSignal.$current.withValue(signal) {
      Task { try await StopSignal.cancelling { try await Task.sleep(for: .seconds(60)) } }
    }
    signal.request()
    await #expect(throws: CancellationError.self) { try await work.value }
  }
}
