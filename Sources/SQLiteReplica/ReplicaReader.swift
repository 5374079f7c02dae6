/// Reads a replica's database with SQL, without changing it; from any process, while another one syncs.
public actor ReplicaReader {
  private let queue: ReplicaQueue
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    queue.asUnownedSerialExecutor()
  }

  private let connection: SQLiteConnection

  /// Opens an existing database.
  public static func open(path: String) async throws -> ReplicaReader {
    let queue = ReplicaQueue()
    return try await withCheckedThrowingContinuation { continuation in
      queue.run {
        continuation.resume(with: Result { try ReplicaReader(path: path, queue: queue) })
      }
    }
  }

  private init(path: String, queue: ReplicaQueue) throws {
    self.queue = queue
    connection = try SQLiteConnection(path: path, readOnly: true)
  }

  /// Runs one statement that only reads.
  public func query(_ sql: String, _ binds: [SQLiteValue] = []) throws -> QueryResult {
    let statement = try connection.prepare(sql)
    for (index, value) in binds.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
    var rows: [[SQLiteValue]] = []
    while try statement.step() { rows.append(statement.row) }
    return QueryResult(columns: (0..<statement.columnCount).map { statement.name($0) }, rows: rows)
  }

  /// Runs `body` so that all its queries see the same checkpoint.
  public func snapshot<Result: Sendable>(
    _ body: @Sendable (isolated ReplicaReader) throws -> Result
  ) throws -> Result {
    try connection.execute("BEGIN")
    defer { try? connection.execute("COMMIT") }
    return try body(self)
  }
}
