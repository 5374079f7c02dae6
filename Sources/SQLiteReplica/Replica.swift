public import SyncProtocol

/// A local copy of one user's rows in a SQLite database.
///
/// The application reads its tables with ordinary SQL, from this process or another. It sees whole checkpoints only: the
/// lines of a download are kept aside, and what a `complete` line covers becomes visible in one transaction.
///
/// A replica runs on a queue of its own. At most one may be open on a database file.
public actor Replica {
  /// How a replica works; the defaults suit.
  public struct Configuration: Sendable {
    /// Downloaded bytes that are held in memory before they are written to the database.
    public var stageMemory: Int = 256 << 10
    /// The current time in microseconds since 1970, for the time of the last checkpoint.
    public var now: @Sendable () -> Int64 = { WallClock.microseconds() }
    /// Called between the steps of applying a checkpoint; a test ends the process in it.
    package var onStep: (@Sendable () throws -> Void)?

    public init() {}
  }

  private let queue: ReplicaQueue
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    queue.asUnownedSerialExecutor()
  }

  /// The database file.
  public nonisolated let path: String
  private let configuration: Configuration
  let store: ReplicaStore
  private var stage: Stage
  private var state: DownloadState?
  private var newSchema: PublishedSchema?
  private var downloaded: Int64 = 0
  private var expected: Int64 = 0

  /// Opens the database, and makes it if there is none.
  public static func open(
    path: String, configuration: Configuration = Configuration()
  ) async throws -> Replica {
    let queue = ReplicaQueue()
    return try await withCheckedThrowingContinuation { continuation in
      queue.run {
        continuation.resume(
          with: Result { try Replica(path: path, configuration: configuration, queue: queue) })
      }
    }
  }

  private init(path: String, configuration: Configuration, queue: ReplicaQueue) throws {
    self.path = path
    self.configuration = configuration
    self.queue = queue
    store = try ReplicaStore(path: path)
    stage = Stage(
      store: store, memoryLimit: configuration.stageMemory, onStep: configuration.onStep)
  }

  // MARK: A connection's life

  /// Begins a connection: what to tell the gateway of this replica.
  package func begin() throws -> (
    clientID: String?, schema: String?, positions: [BucketName: SyncPosition]
  ) {
    try stage.flush()
    let positions = try store.positions()
    state = DownloadState(requested: positions)
    newSchema = nil
    stage.schema = nil
    downloaded = try store.stagedOperations()
    expected = downloaded
    return (try store.meta("client_id"), try store.schema()?.hash, positions)
  }

  /// Takes in one line of the stream.
  ///
  /// Throws when the line is no line of the protocol or does not fit what came before, and when a bucket has drifted; the
  /// connection must then be given up. What was downloaded stays.
  package func receive(_ line: [UInt8]) throws -> ReplicaEvent {
    switch try SyncLine(decoding: line) {
    case .schema(let schema):
      newSchema = schema
      // Lines that came before it belong to the schema before it.
      try stage.flush()
      stage.schema = schema
      return .ignored
    case .checkpoint(let checkpoint): return try receive(checkpoint)
    case .rows: return try receiveRows(line)
    case .complete(let complete): return try apply(complete)
    case .keepalive(let keepalive):
      try stage.flush()
      return .keepalive(tokenExpiresIn: keepalive.tokenExpiresIn)
    case .error(let error): return .failed(error)
    case .unknown: return .ignored
    }
  }

  /// Ends a connection: what is in memory becomes durable.
  package func end() throws {
    state = nil
    newSchema = nil
    try stage.flush()
    stage.schema = nil
  }

  // MARK: What is held

  /// The last checkpoint that was applied whole.
  public func lastCheckpoint() throws -> CheckpointTime? {
    guard let last = try store.lastCheckpoint() else { return nil }
    return CheckpointTime(
      tick: last.tick, stamp: last.stamp, appliedAt: try store.meta("applied_at") ?? last.stamp)
  }

  /// The buckets that are held, by name, with the number of rows in each.
  public func buckets() throws -> [(name: String, rows: Int64)] {
    try store.bucketCounts().map { ($0.key.text, $0.value) }.sorted { $0.0 < $1.0 }
  }

  /// The schema of the application's tables; nil before the first checkpoint.
  public func schema() throws -> PublishedSchema? { try store.schema() }

  /// Operations that are downloaded and not visible yet.
  public func stagedOperations() throws -> Int64 {
    try stage.lines.reduce(store.stagedOperations()) { $0 + Int64($1.header.operations) }
  }

  // MARK: Lines

  private func receive(_ line: CheckpointLine) throws -> ReplicaEvent {
    guard var state else { throw ReplicaError.order("A line came outside a connection.") }
    let actions = try state.receive(line)
    var renewed: Set<BucketName> = []
    if !actions.isEmpty {
      try stage.transaction { stage in
        for action in actions {
          switch action {
          case .beginCopy(let bucket, let start):
            try stage.beginCopy(bucket, start: start)
            renewed.insert(bucket)
          case .discard(let bucket): try stage.discard(bucket)
          }
        }
      }
      downloaded = try stagedOperations()
    }
    self.state = state
    let held = try store.bucketCounts()
    let new = try renewed.union(store.replacedBuckets())
    expected = state.announcedCounts.reduce(0) { sum, bucket in
      sum + max(0, bucket.value - (new.contains(bucket.key) ? 0 : held[bucket.key] ?? 0))
    }
    return .announced(line, progress)
  }

  private func receiveRows(_ line: [UInt8]) throws -> ReplicaEvent {
    guard let state else { throw ReplicaError.order("A line came outside a connection.") }
    let bucket = try RowsLineDecoder.bucket(of: line)
    try state.receiveRows(of: bucket)
    let header = try stage.append(line, of: bucket)
    downloaded += Int64(header.operations)
    return .progress(progress)
  }

  private func apply(_ line: CompleteLine) throws -> ReplicaEvent {
    guard var state else { throw ReplicaError.order("A line came outside a connection.") }
    let completion = try state.complete(line)
    let application = CheckpointApplication(
      store: store, completion: completion, newSchema: newSchema, unstaged: stage.lines,
      appliedAt: Stamp.text(microseconds: configuration.now()), onStep: configuration.onStep)
    switch try application.run() {
    case .postponed: return .ignored
    case .drifted(let buckets):
      try stage.refetch(buckets)
      self.state = nil
      throw ReplicaError.drifted(buckets.map(\.text))
    case .applied(let rowsChanged, let tables):
      state.completed(completion)
      self.state = state
      newSchema = nil
      stage.removeApplied(
        completion.priority == nil ? nil : Set(completion.buckets.map(\.name)))
      downloaded = completion.priority == nil ? 0 : try stagedOperations()
      if completion.priority == nil { expected = 0 }
      return .applied(
        AppliedCheckpoint(
          tick: completion.tick, stamp: completion.stamp, priority: completion.priority,
          rowsChanged: rowsChanged, tables: tables))
    }
  }

  private var progress: DownloadProgress {
    DownloadProgress(downloaded: downloaded, expected: max(expected, downloaded))
  }
}
