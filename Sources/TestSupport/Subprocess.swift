internal import Foundation
internal import Glibc
internal import Synchronization

/// A program of this package run from a test, with its output kept.
///
/// ```swift
/// let server = try Subprocess.start("sluice", ["serve", "--config", path])
/// let line = try await server.line(containing: "listening")
/// server.kill9()
/// let exit = await server.exit()
/// ```
///
/// What still runs when the test process exits is killed.
package final class Subprocess: Sendable {
  /// How a program ended.
  package struct Exit: Sendable, Equatable {
    /// The exit status, or the signal's number if a signal ended it.
    package let status: Int32
    package let wasSignalled: Bool

    package init(status: Int32, wasSignalled: Bool = false) {
      self.status = status
      self.wasSignalled = wasSignalled
    }
  }

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private struct State {
    var output: [UInt8] = []
    var errors: [UInt8] = []
    var openStreams = 2
    var termination: Exit?
    var waiters: [CheckedContinuation<Void, Never>] = []

    var exit: Exit? { openStreams == 0 ? termination : nil }
  }

  private static let running = Mutex<Set<pid_t>>([])
  private static let killAtExit: Void = {
    atexit { Subprocess.running.withLock { for pid in $0 { kill(pid, SIGKILL) } } }
  }()

  package let processID: Int32
  private let state: Arc

  /// Shared with the handlers, which outlive nothing else.
  private final class Arc: Sendable {
    let value = Mutex(State())
  }

  /// The directory of the built programs: that of the test runner.
  package static var productsDirectory: String {
    let runner =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: runner).deletingLastPathComponent().path
  }

  /// Starts a program: a product of this package by its name, or any by its path.
  /// `environment` is added to this process's own.
  package static func start(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:],
    directory: String? = nil
  ) throws -> Subprocess {
    try Subprocess(program, arguments, environment, directory)
  }

  /// Runs a program to its end.
  package static func run(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:],
    directory: String? = nil
  ) async throws -> (exit: Exit, output: String, errors: String) {
    let process = try start(program, arguments, environment: environment, directory: directory)
    let exit = await process.exit()
    return (exit, process.output, process.errors)
  }

  private init(
    _ program: String, _ arguments: [String], _ environment: [String: String], _ directory: String?
  ) throws {
    _ = Self.killAtExit
    let path = program.contains("/") ? program : "\(Self.productsDirectory)/\(program)"
    let (output, errors) = (try Spawn.pipe(), try Spawn.pipe())
    defer {
      close(output.writer)
      close(errors.writer)
    }
    let state = Arc()
    let pid: pid_t
    do {
      pid = try Spawn.start(
        path, arguments,
        environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
        directory: directory, output: output.writer, errors: errors.writer)
    } catch {
      close(output.reader)
      close(errors.reader)
      throw error
    }
    processID = pid
    self.state = state
    Self.running.withLock { _ = $0.insert(pid) }
    Spawn.onThread { Self.collect(output.reader, of: state) { $0.output += $1 } }
    Spawn.onThread { Self.collect(errors.reader, of: state) { $0.errors += $1 } }
    Spawn.onThread {
      let (status, wasSignalled) = Spawn.wait(for: pid)
      Self.running.withLock { _ = $0.remove(pid) }
      Self.change(state) { $0.termination = Exit(status: status, wasSignalled: wasSignalled) }
    }
  }

  /// What the program has written so far.
  package var output: String { state.value.withLock { String(decoding: $0.output, as: UTF8.self) } }
  package var errors: String { state.value.withLock { String(decoding: $0.errors, as: UTF8.self) } }

  package var isRunning: Bool { state.value.withLock { $0.termination == nil } }

  package func send(signal: Int32) {
    // Under the lock, in which the end is recorded: the number cannot yet be another process's for long.
    state.value.withLock { if $0.termination == nil { _ = kill(processID, signal) } }
  }

  package func kill9() { send(signal: SIGKILL) }
  package func terminate() { send(signal: SIGTERM) }

  /// Waits until the program has ended and its output is complete.
  package func exit() async -> Exit {
    while true {
      if let exit = state.value.withLock({ $0.exit }) { return exit }
      await change()
    }
  }

  /// Waits for a complete line of output, standard or error, that contains `text`.
  package func line(
    containing text: String, within limit: Duration = .seconds(30)
  ) async throws -> String {
    let deadline = ContinuousClock.now + limit
    while true {
      let isOver = state.value.withLock { $0.exit != nil }
      for stream in [output, errors] {
        let lines = stream.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        if let line = lines.first(where: { $0.contains(text) }) { return String(line) }
      }
      guard !isOver, ContinuousClock.now < deadline else {
        throw Failure(
          description: "no line with \"\(text)\" \(isOver ? "before the end" : "in time"); "
            + "output: \(output.suffix(2000)) errors: \(errors.suffix(2000))")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  private func change() async {
    await withCheckedContinuation { continuation in
      let isOver = state.value.withLock { state in
        if state.exit == nil { state.waiters.append(continuation) }
        return state.exit != nil
      }
      if isOver { continuation.resume() }
    }
  }

  /// Reads to the end, blocking.
  private static func collect(
    _ reader: Int32, of state: Arc, _ append: (inout State, ArraySlice<UInt8>) -> Void
  ) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(reader, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      state.value.withLock { append(&$0, buffer[..<count]) }
    }
    close(reader)
    change(state) { $0.openStreams -= 1 }
  }

  private static func change(_ state: Arc, _ body: (inout State) -> Void) {
    let waiters = state.value.withLock { state in
      body(&state)
      guard state.exit != nil else { return [CheckedContinuation<Void, Never>]() }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }
}
