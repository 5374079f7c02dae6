internal import Glibc
internal import Synchronization

/// Starts programs and waits for them with the system's own calls.
///
/// Foundation's `Process` waits through a run loop, and among many threads can miss the end of a program.
enum Spawn {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Held while a program starts and while a pipe is made, so that no program inherits the end of another's.
  private static let lock = Mutex(())

  static func pipe() throws -> (reader: Int32, writer: Int32) {
    var ends: [Int32] = [-1, -1]
    let result = lock.withLock { _ in
      let result = Glibc.pipe(&ends)
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      return result
    }
    guard result == 0 else { throw Failure(description: String(cString: strerror(errno))) }
    return (ends[0], ends[1])
  }

  /// Starts a program with nothing to read, which writes to the two descriptors.
  static func start(
    _ path: String, _ arguments: [String], environment: [String: String], directory: String?,
    output: Int32, errors: Int32
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_adddup2(&actions, errors, 2)

    // Threads of this process may have signals blocked, which a program would inherit.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

    let command = (directory.map { ["/usr/bin/env", "-C", $0] } ?? []) + [path] + arguments
    let words = command.map { strdup($0) }
    let variables = environment.map { strdup("\($0.key)=\($0.value)") }
    defer { for text in words + variables { free(text) } }
    var process = pid_t()
    let result = lock.withLock { _ in
      posix_spawn(&process, command[0], &actions, &attributes, words + [nil], variables + [nil])
    }
    guard result == 0 else {
      throw Failure(description: "\(path): \(String(cString: strerror(result)))")
    }
    return process
  }

  /// Waits for the end of a program started here, blocking.
  static func wait(for process: pid_t) -> (status: Int32, wasSignalled: Bool) {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    let signal = status & 0x7f
    return signal == 0 ? ((status >> 8) & 0xff, false) : (signal, true)
  }

  /// Runs `body` on a thread of its own, since it blocks for long.
  static func onThread(_ body: @escaping @Sendable () -> Void) {
    final class Box {
      let body: @Sendable () -> Void
      init(body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      },
      Unmanaged.passRetained(Box(body: body)).toOpaque())
    precondition(result == 0, "no thread to wait for a program")
    pthread_detach(thread)
  }
}
