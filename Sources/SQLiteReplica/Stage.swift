import SyncProtocol

/// Lines of rows on their way: in memory while they are few, in the database as soon as they are many.
///
/// In the database they wait as they came for the checkpoint that they belong to; but the rows of the first download are
/// written as rows at once, where nobody sees them (`FirstLoad`).
struct Stage {
  let store: ReplicaStore
  /// More bytes than these are written to the database.
  let memoryLimit: Int
  /// Called after each line that is written as rows; a test ends the process in it.
  let onStep: (() throws -> Void)?
  /// The schema that the gateway has sent and no checkpoint has shown.
  var schema: PublishedSchema? {
    didSet { firstLoad = nil }
  }

  private(set) var lines: [StagedLine] = []
  private var bytes = 0
  /// nil until something is written, and after a failure.
  private var firstLoad: FirstLoad?

  init(store: ReplicaStore, memoryLimit: Int, onStep: (() throws -> Void)?) {
    self.store = store
    self.memoryLimit = memoryLimit
    self.onStep = onStep
  }

  /// Takes in a line of this bucket's rows, after checking it.
  mutating func append(_ line: [UInt8], of bucket: BucketName) throws -> RowsLineDecoder.Header {
    // A long line of a first download is walked over once, for checking and writing.
    if bytes + line.count > memoryLimit,
      let header = try write(then: { try $0.load(line, of: bucket, into: $1) })
    {
      return header
    }
    let header = try RowsLineDecoder.decode(line) { _ in }
    lines.append(StagedLine(bytes: line, header: header))
    bytes += line.count
    if bytes > memoryLimit { try flush() }
    return header
  }

  /// A new copy of the bucket begins; what has come of it is void.
  mutating func beginCopy(_ bucket: BucketName, start: Int64) throws {
    try discard(bucket)
    try store.beginCopy(bucket, start: start)
  }

  /// Forgets what has come of a bucket. Inside a transaction.
  mutating func discard(_ bucket: BucketName) throws {
    forgetLines(of: bucket)
    if try FirstLoad.isUnderWay(in: store) { try openFirstLoad()?.discard(bucket) }
    try store.discardDownload(bucket)
  }

  /// Makes the next request leave these buckets out, so that they are fetched again from nothing.
  mutating func refetch(_ buckets: [BucketName]) throws {
    try transaction { stage in
      for bucket in buckets {
        try stage.discard(bucket)
        try stage.store.connection.run(
          "UPDATE sluice_buckets SET refetch = 1 WHERE name = ?1", .text(bucket.text))
      }
    }
  }

  /// What was written has been applied, and the lines in memory of every bucket, or of these.
  mutating func removeApplied(_ buckets: Set<BucketName>?) {
    schema = nil
    guard let buckets else {
      lines = []
      bytes = 0
      return
    }
    for bucket in buckets { forgetLines(of: bucket) }
  }

  /// Writes the lines in memory to the database, with the position that each bucket's download has reached.
  mutating func flush() throws {
    guard !lines.isEmpty else { return }
    try write { _, _ in }
  }

  /// Runs `body` in a transaction.
  mutating func transaction<Result>(
    _ body: (inout Stage) throws -> Result
  ) throws -> Result {
    do {
      return try store.connection.transaction { try body(&self) }
    } catch {
      // It may have noted what is rolled back.
      firstLoad = nil
      throw error
    }
  }

  // MARK: Writing

  /// In one transaction writes the lines in memory and what `next` has to write, and forgets the lines.
  private mutating func write<Result>(
    then next: (Stage, FirstLoad?) throws -> Result
  ) throws -> Result {
    let result = try transaction { stage in
      let firstLoad = try stage.openFirstLoad()
      for line in stage.lines {
        let header = try stage.load(line.bytes, of: line.bucket, into: firstLoad)
        if header == nil { try stage.keep(line) }
      }
      return try next(stage, firstLoad)
    }
    lines = []
    bytes = 0
    return result
  }

  private mutating func openFirstLoad() throws -> FirstLoad? {
    if firstLoad == nil { firstLoad = try FirstLoad.open(in: store, schema: schema) }
    return firstLoad
  }

  private func load(
    _ line: [UInt8], of bucket: BucketName, into firstLoad: FirstLoad?
  ) throws -> RowsLineDecoder.Header? {
    guard let firstLoad else { return nil }
    let header = try firstLoad.apply(line: line, of: bucket)
    try firstLoad.note(bucket)
    try store.noteDownload(header)
    try onStep?()
    return header
  }

  private func keep(_ line: StagedLine) throws {
    let insert = try store.connection.prepare(
      "INSERT INTO sluice_pages (bucket, line) VALUES (?1, ?2)")
    try insert.bind(.text(line.bucket.text), at: 1)
    try line.bytes.withUnsafeBufferPointer {
      insert.bind(blob: $0, at: 2)
      try insert.run()
    }
    try store.noteDownload(line.header)
  }

  private mutating func forgetLines(of bucket: BucketName) {
    lines.removeAll { $0.bucket == bucket }
    bytes = lines.reduce(0) { $0 + $1.bytes.count }
  }
}
