import Foundation
import Glibc
import Synchronization

/// A process the tests started: its output goes to a file, it can be killed at any moment, and it ends with the tests.
final class ChildProcess: Sendable {
  let pid: Int32
  let outputFile: URL
  private let process: ProcessBox

  /// Starts `executable`, found in PATH unless it is a path, with both outputs going to `outputFile`.
  init(
    _ executable: String, _ arguments: [String], outputFile: URL,
    environment: [String: String] = [:]
  ) throws {
    let process = Process()
    process.executableURL = try Executables.find(executable)
    process.arguments = arguments
    process.environment = Executables.environment.merging(environment) { _, new in new }
    process.standardInput = FileHandle.nullDevice
    try Data().write(to: outputFile)
    let output = try FileHandle(forWritingTo: outputFile)
    process.standardOutput = output
    process.standardError = output
    try process.run()
    try? output.close()
    self.process = ProcessBox(process)
    self.pid = process.processIdentifier
    self.outputFile = outputFile
    Janitor.shared.watch(pid)
  }

  var isRunning: Bool { process.value.isRunning }
  var output: String { (try? String(contentsOf: outputFile, encoding: .utf8)) ?? "" }

  /// Kills without warning and waits until the process is gone.
  func kill9() async {
    Foundation.kill(pid, SIGKILL)
    await waitUntilGone()
  }

  /// Asks to stop, waits `seconds`, then kills; the exit status.
  @discardableResult
  func stop(within seconds: Double = 10) async -> Int32 {
    Foundation.kill(pid, SIGTERM)
    let deadline = Date.now + seconds
    while process.value.isRunning, Date.now < deadline { await pause(0.01) }
    if process.value.isRunning { Foundation.kill(pid, SIGKILL) }
    await waitUntilGone()
    return process.value.terminationStatus
  }

  /// Waits for the end by itself; nil when it has not ended in `seconds`.
  func exitStatus(within seconds: Double) async -> Int32? {
    let deadline = Date.now + seconds
    while process.value.isRunning {
      if Date.now > deadline { return nil }
      await pause(0.01)
    }
    return process.value.terminationStatus
  }

  /// The memory it holds, in bytes, as the kernel counts it.
  var residentBytes: Int { memory("VmRSS:") }
  /// The most that it ever held.
  var peakBytes: Int { memory("VmHWM:") }

  private func memory(_ name: String) -> Int {
    let text = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
    for line in text.split(separator: "\n") where line.hasPrefix(name) {
      return (Int(line.split(separator: " ").dropFirst().first ?? "0") ?? 0) * 1024
    }
    return 0
  }

  private func waitUntilGone() async {
    while process.value.isRunning { await pause(0.005) }
    Janitor.shared.forget(pid)
  }
}

/// `Process` is not `Sendable`; what is used of it after the start (state, status) is locked inside Foundation.
private struct ProcessBox: @unchecked Sendable {
  let value: Process
  init(_ value: Process) { self.value = value }
}

/// Runs a command to its end and gives its status and output.
func run(
  _ executable: String, _ arguments: [String], input: String? = nil,
  environment: [String: String] = [:]
) async throws -> (status: Int32, output: String, error: String) {
  try await blocking {
    let process = Process()
    process.executableURL = try Executables.find(executable)
    process.arguments = arguments
    process.environment = Executables.environment.merging(environment) { _, new in new }
    let folder = try Workspace.shared.folder("run")
    defer { try? FileManager.default.removeItem(at: folder) }
    let files = ["in", "out", "err"].map { folder.appending(path: $0) }
    for file in files { try Data().write(to: file) }
    if let input { try Data(input.utf8).write(to: files[0]) }
    process.standardInput = try FileHandle(forReadingFrom: files[0])
    process.standardOutput = try FileHandle(forWritingTo: files[1])
    process.standardError = try FileHandle(forWritingTo: files[2])
    try process.run()
    process.waitUntilExit()
    return (
      process.terminationStatus, try String(contentsOf: files[1], encoding: .utf8),
      try String(contentsOf: files[2], encoding: .utf8)
    )
  }
}

/// Runs blocking work on a thread of its own, away from the cooperative pool.
func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result(catching: body)) }
    thread.stackSize = 1 << 20
    thread.start()
  }
}

func pause(_ seconds: Double) async {
  try? await Task.sleep(for: .seconds(seconds))
}

/// Asks again and again until the answer is yes; throws what it was waiting for when `seconds` have passed.
func eventually(
  _ what: String, within seconds: Double = 30, every interval: Double = 0.05,
  _ condition: () async throws -> Bool
) async throws {
  let deadline = Date.now + seconds
  while true {
    if try await condition() { return }
    if Date.now > deadline { throw Expired(what: what, seconds: seconds) }
    await pause(interval)
  }
}

struct Expired: Error, CustomStringConvertible {
  let what: String
  let seconds: Double
  var description: String { "not within \(seconds) s: \(what)" }
}

/// Where the built commands are: beside the test bundle.
enum Executables {
  static let environment: [String: String] = {
    var environment = ProcessInfo.processInfo.environment
    for name in environment.keys where name.hasPrefix("PG") || name.hasPrefix("SLUICE_") {
      environment[name] = nil
    }
    return environment
  }()

  static let buildFolder: URL = {
    let executable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    let arguments = ProcessInfo.processInfo.arguments
    for argument in arguments where argument.contains(".xctest") {
      var url = URL(filePath: argument)
      while url.path != "/", !url.lastPathComponent.hasSuffix(".xctest") {
        url.deleteLastPathComponent()
      }
      return url.deletingLastPathComponent()
    }
    return executable.deletingLastPathComponent()
  }()

  static func find(_ name: String) throws -> URL {
    if name.contains("/") { return URL(filePath: name) }
    let built = buildFolder.appending(path: name)
    if name.hasPrefix("sluice") { return built }
    for folder in (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":") {
      let candidate = URL(filePath: String(folder)).appending(path: name)
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
    }
    throw CocoaError(.fileNoSuchFile, userInfo: [NSFilePathErrorKey: name])
  }
}

/// One temporary folder for the whole run.
final class Workspace: Sendable {
  static let shared = Workspace()
  let root: URL
  private let next = Atomic(0)

  private init() {
    root = FileManager.default.temporaryDirectory
      .appending(path: "sluice-tests-\(ProcessInfo.processInfo.processIdentifier)")
    try? FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    Janitor.shared.remove(root)
  }

  func folder(_ name: String) throws -> URL {
    let number = next.add(1, ordering: .relaxed).newValue
    let url = root.appending(path: "\(name)-\(number)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url
  }
}

/// A shell that outlives the tests by a moment: when they end, however they end, it kills what they left running.
final class Janitor: Sendable {
  static let shared = Janitor()
  private let input: FileHandle
  private let lock = Mutex(())

  private init() {
    let script = """
      pids=" "; folders=
      while read -r verb what; do
        case $verb in
          watch) pids="$pids$what " ;;
          forget) pids=$(echo "$pids" | sed "s/ $what / /") ;;
          remove) folders="$folders $what" ;;
        esac
      done
      for p in $pids; do kill -9 "$p" 2>/dev/null; done
      for f in $folders; do rm -rf "$f"; done
      """
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { preconditionFailure("no descriptors left") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    input = FileHandle(fileDescriptor: ends[1])
    Self.spawn("/usr/bin/setsid", ["--fork", "sh", "-c", script], input: ends[0])
    close(ends[0])
  }

  /// Starts a program that starts another and ends at once.
  ///
  /// Foundation's `Process` would wait for the other one too, and leave the first behind as a zombie; those who wait for
  /// any child, as exit tests do, would find that again and again.
  private static func spawn(_ path: String, _ arguments: [String], input: Int32) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    let words = ([path] + arguments).map { strdup($0) }
    let variables = [strdup("PATH=/usr/bin:/bin")]
    defer { for text in words + variables { free(text) } }
    var pid = pid_t()
    guard posix_spawn(&pid, path, &actions, nil, words + [nil], variables + [nil]) == 0 else {
      preconditionFailure("\(path) cannot be started")
    }
    while waitpid(pid, nil, 0) < 0, errno == EINTR {}
  }

  func watch(_ pid: Int32) { say("watch \(pid)") }
  func forget(_ pid: Int32) { say("forget \(pid)") }
  func remove(_ folder: URL) { say("remove \(folder.path)") }

  private func say(_ line: String) {
    lock.withLock { _ in try? input.write(contentsOf: Data((line + "\n").utf8)) }
  }
}
