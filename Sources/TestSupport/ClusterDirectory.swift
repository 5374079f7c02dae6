internal import Foundation
internal import Glibc
internal import Synchronization

/// The directory of a cluster (data, socket, log) and the server that runs in it. Its methods block.
///
/// A lock on the file `owner` lasts as long as the process that made the directory, however that ends: a
/// directory whose lock is free is an orphan.
final class ClusterDirectory: Sendable {
  private static let prefix = "sluice-test-"
  private static let alive = Mutex<[ClusterDirectory]>([])

  let path: String
  private let binaries: String
  private let settings: [String: String]
  private let smallDisk: Int?
  /// Held open for its lock.
  private let owner: Int32

  static func newPath() -> String {
    let number = String(UInt32.random(in: 0...UInt32.max), radix: 16)
    return "/tmp/\(prefix)\(getpid())-\(number)"
  }

  /// Makes the directory and runs initdb in it.
  init(path: String, settings: [String: String], smallDisk: Int?) throws {
    self.path = path
    self.settings = settings
    self.smallDisk = smallDisk
    binaries = try Self.findBinaries()
    owner = try Self.exclusively {
      Self.removeOrphans()
      guard mkdir(path, 0o755) == 0 else { throw Self.failure("mkdir") }
      let owner = open("\(path)/owner", O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
      guard owner >= 0, flock(owner, LOCK_EX | LOCK_NB) == 0 else { throw Self.failure("flock") }
      return owner
    }
    let isFirst = Self.alive.withLock { alive in
      alive.append(self)
      return alive.count == 1
    }
    if isFirst { atexit { ClusterDirectory.removeAll() } }
    if let user = Self.serverUser { chown(path, user.uid, user.gid) }
    try run([
      "\(binaries)/initdb", "-D", "\(path)/data", "-U", PostgresCluster.user, "--auth=trust",
      "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
    ])
  }

  // MARK: Server

  /// Starts the server and waits until it takes connections.
  func startServer() throws {
    var values = [
      "listen_addresses": "", "unix_socket_directories": path, "fsync": "off",
      "full_page_writes": "off", "max_connections": "200", "max_prepared_transactions": "20",
      "wal_level": "logical", "shared_buffers": "64MB", "jit": "off", "log_statement": "none",
      "superuser_reserved_connections": "3", "max_wal_size": "2GB",
    ]
    values.merge(settings) { $1 }
    let options = values.sorted { $0.key < $1.key }.flatMap { ["-c", "\($0.key)=\($0.value)"] }
    if serverPID != nil { return }
    let process = try spawn(
      ["\(binaries)/postgres", "-D", "\(path)/data"] + options, smallDisk: smallDisk)
    // Takes note of its end, which leaves no zombie.
    Spawn.onThread { _ = Spawn.wait(for: process) }
    try wait(for: "start") {
      // The first line of the file is the process, the eighth its state; a killed server leaves the file.
      let lines = self.pidFile
      return lines.count > 7 && pid_t(lines[0]) == process
        && lines[7].hasPrefix("ready")
    }
  }

  /// Ends the server, and waits until all its processes are gone.
  func stopServer(_ ending: PostgresCluster.Ending) throws {
    guard let server = serverPID else { return }
    let processes = [server] + Self.children(of: server)
    switch ending {
    case .fast: kill(server, SIGINT)
    case .immediate: kill(server, SIGQUIT)
    case .orphaned: kill(server, SIGKILL)
    case .killed: for process in processes { kill(process, SIGKILL) }
    }
    try wait(for: "end") { processes.allSatisfy { !Self.isRunning($0) } }
  }

  private var pidFile: [Substring] {
    let text = (try? String(contentsOfFile: "\(path)/data/postmaster.pid", encoding: .utf8)) ?? ""
    return text.split(separator: "\n", omittingEmptySubsequences: false)
  }

  /// The server, if it runs: another process can have got the number of a dead one.
  private var serverPID: pid_t? {
    guard let pid = pidFile.first.flatMap({ pid_t($0) }) else { return nil }
    let command = (try? String(contentsOfFile: "/proc/\(pid)/cmdline", encoding: .utf8)) ?? ""
    return command.contains("\(path)/data") ? pid : nil
  }

  private func wait(for what: String, until condition: () -> Bool) throws {
    for _ in 0..<6000 {
      if condition() { return }
      usleep(10_000)
    }
    let log = (try? String(contentsOfFile: "\(path)/log", encoding: .utf8)) ?? ""
    throw PostgresCluster.Failure(
      description: "the server did not \(what) in time; its log: \(log.suffix(2000))")
  }

  // MARK: Removal

  private static func removeAll() {
    for directory in alive.withLock({ $0 }) { directory.remove() }
  }

  private func remove() {
    try? stopServer(.immediate)
    try? FileManager.default.removeItem(atPath: path)
  }

  /// For a directory found, not made.
  private init(orphan path: String, owner: Int32) {
    self.path = path
    self.owner = owner
    binaries = ""
    settings = [:]
    smallDisk = nil
  }

  private static func removeOrphans() {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/tmp")) ?? []
    for name in names where name.hasPrefix(prefix) {
      let owner = open("/tmp/\(name)/owner", O_RDWR | O_CLOEXEC)
      guard owner >= 0 else { continue }
      if flock(owner, LOCK_EX | LOCK_NB) == 0 {
        ClusterDirectory(orphan: "/tmp/\(name)", owner: owner).remove()
      }
      close(owner)
    }
  }

  /// Keeps one process from taking for an orphan what another is just making.
  private static func exclusively<R>(_ body: () throws -> R) throws -> R {
    let lock = open("/tmp/sluice-test.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0o666)
    guard lock >= 0, flock(lock, LOCK_EX) == 0 else { throw failure("lock") }
    defer { close(lock) }
    return try body()
  }

  // MARK: Processes

  /// The user a server runs as when this process is root, which PostgreSQL refuses.
  private static var serverUser: (name: String, uid: uid_t, gid: gid_t)? {
    guard getuid() == 0 else { return nil }
    for name in ["postgres", "nobody"] {
      if let entry = getpwnam(name) { return (name, entry.pointee.pw_uid, entry.pointee.pw_gid) }
    }
    return nil
  }

  private static func findBinaries() throws -> String {
    if let path = ProcessInfo.processInfo.environment["SLUICE_TEST_PGBIN"] { return path }
    let root = "/usr/lib/postgresql"
    let versions = ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? [])
      .filter { FileManager.default.isExecutableFile(atPath: "\(root)/\($0)/bin/initdb") }
    guard let newest = versions.max(by: { (Int($0) ?? 0) < (Int($1) ?? 0) }) else {
      throw PostgresCluster.Failure(
        description: "no PostgreSQL server in \(root); SLUICE_TEST_PGBIN names another place")
    }
    return "\(root)/\(newest)/bin"
  }

  private func run(_ command: [String]) throws {
    let process = try spawn(command)
    guard Spawn.wait(for: process) == (0, false) else {
      let log = (try? String(contentsOfFile: "\(path)/log", encoding: .utf8)) ?? ""
      throw PostgresCluster.Failure(description: "\(command[0]) failed: \(log.suffix(2000))")
    }
  }

  /// A command that runs another one with a file system in memory of so many megabytes at `path`, which
  /// nobody else sees and which goes away with it.
  static func mounting(_ megabytes: Int, at path: String, _ command: [String]) -> [String] {
    // What may mount is root, or anybody where the kernel lets him be root of a world of his own.
    let world = getuid() == 0 ? [] : ["--user", "--map-current-user", "--keep-caps"]
    let owner = serverUser.map { ",uid=\($0.uid),gid=\($0.gid)" } ?? ""
    let script =
      "mount -t tmpfs -o size=\(megabytes)m,mode=0700\(owner) none '\(path)' && exec \"$@\""
    return ["/usr/bin/unshare"] + world
      + ["--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh"] + command
  }

  private func spawn(_ command: [String], smallDisk: Int? = nil) throws -> pid_t {
    var command = command
    if let user = Self.serverUser {
      command =
        ["/usr/bin/setpriv", "--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups"]
        + command
    }
    if let smallDisk {
      mkdir("\(path)/small", 0o755)
      command = Self.mounting(smallDisk, at: "\(path)/small", command)
    }
    let log = open("\(path)/log", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0o644)
    guard log >= 0 else { throw Self.failure("log") }
    defer { close(log) }
    return try Spawn.start(
      command[0], Array(command.dropFirst()),
      environment: ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"],
      directory: path, output: log, errors: log)
  }

  private static func children(of parent: pid_t) -> [pid_t] {
    let list = "/proc/\(parent)/task/\(parent)/children"
    let text = (try? String(contentsOfFile: list, encoding: .utf8)) ?? ""
    return text.split(whereSeparator: \.isWhitespace).compactMap { pid_t($0) }
  }

  /// Whether a process runs; one that has ended and was not waited for does not.
  private static func isRunning(_ process: pid_t) -> Bool {
    guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else {
      return false
    }
    let state = text.split(separator: ")").last?.dropFirst().first
    return state != "Z" && state != "X"
  }

  private static func failure(_ what: String) -> PostgresCluster.Failure {
    PostgresCluster.Failure(description: "\(what): \(String(cString: strerror(errno)))")
  }
}
