internal import CLibevent
internal import Glibc
internal import Synchronization

/// What the thread of an `EventLoop` works on. It outlives the loop by the time the thread needs to end.
///
/// `@unchecked`: the unprotected fields belong to the loop's thread; other threads use `remote` and the
/// wake-up pipe only.
final class LoopCore: @unchecked Sendable {
  enum Item {
    case job(UnownedJob, EventLoop)
    case body(@Sendable () -> Void, EventLoop)
  }

  private struct Remote {
    var items: [Item] = []
    var wakeIsPending = false
    var exitIsRequested = false
  }

  /// Jobs run in one go before descriptors are looked at again.
  private static let drainLimit = 512

  let base: OpaquePointer
  private let threadID = Atomic<UInt>(0)
  private let remote = Mutex(Remote())
  private let wakeReader: Int32
  private let wakeWriter: Int32

  private var wakeEvent: OpaquePointer?
  private var drainEvent: OpaquePointer?
  private var local: [Item] = []
  private var drainIsScheduled = false
  private var events: [ObjectIdentifier: LoopEvent] = [:]

  init() {
    let configuration = event_config_new()
    // All use of the base is on the loop's own thread.
    event_config_set_flag(configuration, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
    guard let base = event_base_new_with_config(configuration) else {
      fatalError("libevent could not create an event base")
    }
    event_config_free(configuration)
    self.base = base
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { fatalError("no descriptors left for an event loop") }
    for end in ends {
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    wakeReader = ends[0]
    wakeWriter = ends[1]
  }

  deinit {
    close(wakeReader)
    close(wakeWriter)
  }

  var isOnThread: Bool {
    threadID.load(ordering: .relaxed) == pthread_self()
  }

  // MARK: Thread

  func startThread(name: String) {
    let start = ThreadStart(core: self, name: name)
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
        pthread_setname_np(pthread_self(), String(start.name.prefix(15)))
        start.core.runThread()
        return nil
      },
      Unmanaged.passRetained(start).toOpaque())
    precondition(result == 0, "no thread for an event loop")
    pthread_detach(thread)
  }

  private func runThread() {
    threadID.store(pthread_self(), ordering: .relaxed)
    let argument = Unmanaged.passUnretained(self).toOpaque()
    wakeEvent = event_new(
      base, wakeReader, Int16(EV_READ | EV_PERSIST),
      { _, _, argument in LoopCore.from(argument)?.woken() }, argument)
    event_add(wakeEvent, nil)
    drainEvent = event_new(
      base, -1, 0, { _, _, argument in LoopCore.from(argument)?.drain() }, argument)
    event_base_loop(base, 0)
    cancelAllEvents()
    event_free(wakeEvent)
    event_free(drainEvent)
    event_base_free(base)
  }

  /// Ends the thread. Called when nobody can enqueue any more.
  func requestExit() {
    remote.withLock { $0.exitIsRequested = true }
    wake()
  }

  // MARK: Queue

  func enqueue(_ item: Item) {
    if isOnThread {
      local.append(item)
      if !drainIsScheduled {
        drainIsScheduled = true
        event_active(drainEvent, 0, 0)
      }
      return
    }
    let mustWake = remote.withLock { remote in
      remote.items.append(item)
      defer { remote.wakeIsPending = true }
      return !remote.wakeIsPending
    }
    if mustWake { wake() }
  }

  private func wake() {
    var byte: UInt8 = 1
    _ = write(wakeWriter, &byte, 1)
  }

  private func woken() {
    var bytes: (UInt64, UInt64) = (0, 0)
    _ = read(wakeReader, &bytes, 16)
    drain()
  }

  private func drain() {
    drainIsScheduled = true
    var done = 0
    while done < Self.drainLimit {
      if local.isEmpty {
        let mustExit = remote.withLock { remote in
          swap(&local, &remote.items)
          remote.wakeIsPending = false
          return remote.exitIsRequested && local.isEmpty
        }
        if mustExit { event_base_loopbreak(base) }
        if local.isEmpty { break }
      }
      var batch: [Item] = []
      swap(&batch, &local)
      for item in batch { run(item) }
      done += batch.count
    }
    drainIsScheduled = false
    if !local.isEmpty {
      // A timer of no delay comes after the next look at the descriptors; an activation would not.
      drainIsScheduled = true
      var none = timeval()
      event_add(drainEvent, &none)
    }
  }

  private func run(_ item: Item) {
    switch item {
    case .job(let job, let loop):
      job.runSynchronously(
        isolatedTo: loop.asUnownedSerialExecutor(), taskExecutor: loop.asUnownedTaskExecutor())
    case .body(let body, _):
      body()
    }
  }

  // MARK: Events

  func register(_ event: LoopEvent) {
    events[ObjectIdentifier(event)] = event
  }

  func unregister(_ event: LoopEvent) {
    events[ObjectIdentifier(event)] = nil
  }

  func cancelAllEvents() {
    for event in events.values { event.cancelOnLoop() }
  }

  private static func from(_ argument: UnsafeMutableRawPointer?) -> LoopCore? {
    argument.map { Unmanaged<LoopCore>.fromOpaque($0).takeUnretainedValue() }
  }

  private final class ThreadStart {
    let core: LoopCore
    let name: String
    init(core: LoopCore, name: String) {
      self.core = core
      self.name = name
    }
  }
}
