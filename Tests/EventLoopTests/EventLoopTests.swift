import EventLoop
import Foundation
import Glibc
import Synchronization
import Testing

/// An actor pinned to a loop, which counts and says where it runs.
private actor Pinned {
  let loop: EventLoop
  var count = 0
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(loop: EventLoop) { self.loop = loop }

  func add() -> Bool {
    count += 1
    return loop.isOnLoop
  }

  /// Adds from a timer's handler, without a hop.
  func addFromTimer() async {
    await withCheckedContinuation { continuation in
      loop.after(.milliseconds(1)) {
        self.assumeIsolated { $0.count += 1 }
        continuation.resume()
      }
    }
  }
}

@Suite struct EventLoopTests {
  @Test func `an actor pinned to a loop runs on its thread, from many tasks at once`() async {
    let pinned = Pinned(loop: EventLoop(name: "test"))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<50 {
        group.addTask {
          for _ in 0..<200 {
            let isOnLoop = await pinned.add()
            #expect(isOnLoop)
          }
        }
      }
    }
    #expect(await pinned.count == 10_000)
  }

  @Test func `a handler of a timer is isolated to an actor of its loop`() async {
    let pinned = Pinned(loop: EventLoop(name: "test"))
    await pinned.addFromTimer()
    #expect(await pinned.count == 1)
  }

  @Test func `a task with the loop as its preferred executor runs on it`() async {
    let loop = EventLoop(name: "test")
    let isOnLoop = await Task(executorPreference: loop) {
      await Task.yield()
      return loop.isOnLoop
    }.value
    #expect(isOnLoop)
  }

  @Test func `timers fire in the order of their deadlines, and not before`() async {
    let loop = EventLoop(name: "test")
    let start = ContinuousClock.now
    let fired = Mutex<[Int]>([])
    await withCheckedContinuation { continuation in
      loop.after(.milliseconds(60)) {
        fired.withLock { $0.append(60) }
        continuation.resume()
      }
      loop.after(.milliseconds(20)) { fired.withLock { $0.append(20) } }
      loop.after(.milliseconds(40)) { fired.withLock { $0.append(40) } }
    }
    #expect(fired.withLock { $0 } == [20, 40, 60])
    #expect(ContinuousClock.now - start >= .milliseconds(50))
  }

  @Test func `a cancelled timer does not fire`() async throws {
    let loop = EventLoop(name: "test")
    let fired = Mutex(false)
    let timer = loop.after(.milliseconds(10)) { fired.withLock { $0 = true } }
    timer.cancel()
    timer.cancel()
    try await Task.sleep(for: .milliseconds(40))
    #expect(fired.withLock { !$0 })
  }

  @Test func `a watch reports readability, again and again, until cancelled`() async {
    let loop = EventLoop(name: "test")
    var ends: [Int32] = [-1, -1]
    #expect(pipe(&ends) == 0)
    let (reader, writer) = (ends[0], ends[1])
    let bytes = AsyncStream<UInt8> { continuation in
      let watch = loop.watch(reader, for: .read) { readiness in
        #expect(readiness == .read)
        #expect(loop.isOnLoop)
        // One byte at a time: level-triggered, the handler is called for the rest.
        var byte: UInt8 = 0
        #expect(read(reader, &byte, 1) == 1)
        continuation.yield(byte)
        if byte == 3 { continuation.finish() }
      }
      continuation.onTermination = { _ in watch.cancel() }
    }
    var sent: [UInt8] = [1, 2, 3]
    #expect(write(writer, &sent, 3) == 3)
    var received: [UInt8] = []
    for await byte in bytes { received.append(byte) }
    #expect(received == [1, 2, 3])
    await withCheckedContinuation { continuation in loop.submit { continuation.resume() } }
    close(reader)
    close(writer)
  }

  @Test func `a watch that does not repeat waits to be armed again`() async {
    let loop = EventLoop(name: "test")
    var ends: [Int32] = [-1, -1]
    #expect(pipe(&ends) == 0)
    let calls = Mutex(0)
    let watch = loop.watch(ends[1], for: .write, repeats: false) { _ in
      calls.withLock { $0 += 1 }
    }
    try? await Task.sleep(for: .milliseconds(20))
    #expect(calls.withLock { $0 } == 1)
    watch.arm()
    try? await Task.sleep(for: .milliseconds(20))
    #expect(calls.withLock { $0 } == 2)
    await withCheckedContinuation { continuation in
      loop.submit {
        watch.cancel()
        continuation.resume()
      }
    }
    close(ends[0])
    close(ends[1])
  }

  @Test func `jobs that beget jobs do not starve timers`() async {
    let loop = EventLoop(name: "test")
    let mustStop = Mutex(false)
    let busy = Task(executorPreference: loop) {
      while !mustStop.withLock({ $0 }) { await Task.yield() }
    }
    await withCheckedContinuation { continuation in
      loop.after(.milliseconds(10)) { continuation.resume() }
    }
    mustStop.withLock { $0 = true }
    await busy.value
  }

  @Test func `the thread and its descriptors go with the last reference`() async throws {
    // Every loop has one epoll descriptor; other suites, which run meanwhile, have few of that kind.
    func descriptors() throws -> Int {
      let folder = "/proc/self/fd/"
      let files = FileManager.default
      return try files.contentsOfDirectory(atPath: folder).count { name in
        // One that was closed in between has no target any more.
        let target = try? files.destinationOfSymbolicLink(atPath: folder + name)
        return target == "anon_inode:[eventpoll]"
      }
    }
    let before = try descriptors()
    for _ in 0..<300 {
      let pinned = Pinned(loop: EventLoop(name: "short"))
      _ = await pinned.add()
    }
    try await Task.sleep(for: .milliseconds(200))
    #expect(try descriptors() - before < 150)
  }

  @Test func `a stopped loop fires no more timers but still runs jobs`() async throws {
    let loop = EventLoop(name: "test")
    let pinned = Pinned(loop: loop)
    let fired = Mutex(false)
    loop.after(.milliseconds(20)) { fired.withLock { $0 = true } }
    loop.stop()
    try await Task.sleep(for: .milliseconds(50))
    #expect(fired.withLock { !$0 })
    #expect(await pinned.add())
  }
}
