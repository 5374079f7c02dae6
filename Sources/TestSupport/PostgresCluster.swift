internal import Dispatch
internal import Foundation
internal import Glibc
internal import Postgres
internal import Synchronization

/// A PostgreSQL server of this process's own, on a Unix socket in a temporary directory.
///
/// The first use of `shared` makes it (initdb takes a second or two). It goes away when the process
/// exits; what a killed process left behind is removed by the next one. As root, the server runs as the
/// user `postgres`. Tests that stop or kill a server make their own: `PostgresCluster()`.
package final class PostgresCluster: Sendable {
  package static let shared = PostgresCluster()

  private struct State {
    var directory: ClusterDirectory?
    var starting: Task<Void, any Error>?
    var databases = 0
  }

  private let settings: [String: String]
  private let smallDisk: Int?
  private let state = Mutex(State())
  /// Commands of the server block; they run one after the other.
  private let queue = DispatchQueue(label: "test cluster")
  private let path: String

  /// A cluster, not yet made, whose server has `settings` besides those that make tests fast, and a disk
  /// of `smallDisk` megabytes at `smallDiskDirectory`, where a tablespace can be made. The disk is empty
  /// again after each start of the server.
  package init(settings: [String: String] = [:], smallDisk: Int? = nil) {
    self.settings = settings
    self.smallDisk = smallDisk
    path = ClusterDirectory.newPath()
  }

  package var smallDiskDirectory: String { "\(path)/small" }

  /// Whether small disks can be made here: by root with the right to mount, or by anybody where the
  /// kernel allows user namespaces.
  package static let hasSmallDisks: Bool = {
    let command = ClusterDirectory.mounting(1, at: "/mnt", ["/bin/true"])
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    defer { close(null) }
    let process = try? Spawn.start(
      command[0], Array(command.dropFirst()), environment: ["PATH": "/usr/bin:/bin"],
      directory: nil, output: null, errors: null)
    return process.map { Spawn.wait(for: $0) == (0, false) } ?? false
  }()

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// The superuser of the cluster.
  package static let user = "sluice"

  /// The directory of the server's socket: `host` for libpq.
  package var socketDirectory: String { path }

  package func connectionString(database: String) -> String {
    let host = path.replacing("/", with: "%2F")
    return "postgresql://\(Self.user)@/\(database)?host=\(host)"
  }

  // MARK: Databases

  /// Makes a database, and the cluster before it if need be.
  package func createDatabase() async throws -> TestDatabase {
    try await ready()
    let number = state.withLock { state in
      state.databases += 1
      return state.databases
    }
    let name = "test_\(number)"
    try await administer("CREATE DATABASE \(name) STRATEGY file_copy")
    return TestDatabase(cluster: self, name: name)
  }

  func administer(_ sql: String) async throws {
    let configuration = PostgresConfiguration(
      connectionString: connectionString(database: "postgres"), connectTimeout: .seconds(30))
    let connection = try await PostgresConnection.connect(configuration, on: TestDatabase.loop)
    do {
      _ = try await connection.query(sql)
      await connection.close()
    } catch {
      await connection.close()
      throw error
    }
  }

  // MARK: Server

  /// Makes the cluster and starts its server, unless that was done before.
  package func ready() async throws {
    let task = state.withLock { state in
      if let starting = state.starting { return starting }
      // Whoever comes first starts it for all, and may be cancelled meanwhile: no group fits.
      let task = Task { [self] in
        try await blocking {
          let directory = try ClusterDirectory(
            path: self.path, settings: self.settings, smallDisk: self.smallDisk)
          self.state.withLock { $0.directory = directory }
          try directory.startServer()
        }
      }
      state.starting = task
      return task
    }
    try await task.value
  }

  /// Starts a server that was stopped or killed.
  package func start() async throws {
    try await ready()
    try await withDirectory { try $0.startServer() }
  }

  /// How a server ends. After all but the first, `start()` recovers.
  package enum Ending: String, Sendable, CaseIterable {
    /// Sessions are cut off and their transactions undone.
    case fast
    /// The same, without a checkpoint.
    case immediate
    /// Every process is killed at once, as by a power cut.
    case killed
    /// Only the first process is killed; the others find out.
    case orphaned
  }

  /// Stops the server and waits until its processes are gone.
  package func stop(_ ending: Ending = .fast) async throws {
    try await withDirectory { try $0.stopServer(ending) }
  }

  package func restart() async throws {
    try await stop()
    try await start()
  }

  package func kill9() async throws { try await stop(.killed) }

  private func withDirectory(
    _ body: @escaping @Sendable (ClusterDirectory) throws -> Void
  ) async throws {
    guard let directory = state.withLock({ $0.directory }) else {
      throw Failure(description: "the cluster was never started")
    }
    try await blocking { try body(directory) }
  }

  private func blocking(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result(catching: body)) }
    }
  }
}
