internal import BucketStorage
internal import HTTPServer
internal import Postgres
internal import SyncProtocol

/// Entries as lines. It computes for long, and therefore runs on the global pool, never on a loop.
enum EntryEncoding {
  private static let stampColumn = 3
  private static let dataColumn = 5
  /// A line of the live feed ends once it is so long.
  private static let lineBytes = 512 << 10

  /// A page as a line of a stream.
  static func line(
    _ page: BucketPage, for request: StreamSession.StateMachine.PageRequest,
    keeping lease: ByteBudget.Lease?
  ) async -> EncodedPage {
    await withTaskExecutorPreference(globalConcurrentExecutor) {
      var encoder = RowsLineEncoder(bucket: request.bucket, reserving: capacity(for: page))
      append(page.rows, of: page.result, to: &encoder, skippingTombstonesThrough: request.start)
      let count = encoder.count
      guard let last = page.rows.last, count > 0 else {
        return EncodedPage(facts: facts(page), line: nil, operations: 0)
      }
      let bytes = encoder.finish(next: position(page.result, last), more: page.hasMore)
      return EncodedPage(
        facts: facts(page), line: SharedBytes(bytes, keeping: lease), operations: count)
    }
  }

  /// A page as the body of an answer.
  static func body(
    _ page: BucketPage, for request: StreamSession.StateMachine.PageRequest, end: SyncPosition,
    keeping lease: ByteBudget.Lease?
  ) async -> RowsBody {
    await withTaskExecutorPreference(globalConcurrentExecutor) {
      var encoder = RowsLineEncoder(
        bucket: request.bucket, form: .page, reserving: capacity(for: page))
      append(page.rows, of: page.result, to: &encoder, skippingTombstonesThrough: request.start)
      var next = end
      if page.hasMore, let last = page.rows.last {
        next = position(page.result, last)
        // Below the floor, only the start of the copy tells that no deletion was missed.
        if next.id < page.bucket.floorID { next.start = request.start }
      }
      return RowsBody(
        facts: facts(page),
        body: SharedBytes(encoder.finish(next: next, more: page.hasMore), keeping: lease))
    }
  }

  /// Room for a single large row; lines that are shorter grow as they need to.
  private static func capacity(for page: BucketPage) -> Int {
    guard page.rows.count == 1, let row = page.rows.first else { return 64 << 10 }
    return page.result.withBytes(row: row, column: dataColumn) { ($0?.count ?? 0) + 4096 }
  }

  /// The entries of several buckets, each bucket's in lines of its own: none for a bucket of which some
  /// are lacking, or whose lines are larger than a page and find no room in the budget.
  static func buckets(
    _ entries: LiveEntries, named names: [Int64: BucketName], within budget: ByteBudget
  ) async -> [SourceChanges.Bucket] {
    await withTaskExecutorPreference(globalConcurrentExecutor) {
      var lines = Dictionary(
        uniqueKeysWithValues: entries.whole.map { ($0, SharedBytes([])) })
      var row = entries.rows.lowerBound
      while row < entries.rows.upperBound {
        let bucket = entries.result.int(row, LiveEntries.bucketColumn)
        var end = row + 1
        while end < entries.rows.upperBound,
          entries.result.int(end, LiveEntries.bucketColumn) == bucket
        {
          end += 1
        }
        if let bucket, let name = names[bucket], entries.whole.contains(bucket) {
          let bytes = Self.lines(row..<end, of: entries.result, bucket: name)
          let lease = bytes.count > StorageSource.pageBytes ? budget.lease(bytes.count) : nil
          lines[bucket] =
            bytes.count > StorageSource.pageBytes && lease == nil
            ? nil : SharedBytes(bytes, keeping: lease)
        }
        row = end
      }
      return entries.buckets.compactMap { head in
        guard let name = names[head.rowID] else { return nil }
        return SourceChanges.Bucket(
          facts: BucketFacts(
            name: name, rowID: head.rowID, count: head.count, digest: head.digest,
            lastID: head.lastID, floor: head.floorID),
          lines: lines[head.rowID])
      }
    }
  }

  /// The rows as lines of a bounded length.
  private static func lines(
    _ rows: Range<Int>, of result: PostgresResult, bucket: BucketName
  ) -> [UInt8] {
    var lines: [UInt8] = []
    var row = rows.lowerBound
    while row < rows.upperBound {
      let first = result.withBytes(row: row, column: dataColumn) { $0?.count ?? 0 }
      var encoder = RowsLineEncoder(
        bucket: bucket, reserving: max(min(lineBytes, 256 * rows.count), first + 4096))
      while row < rows.upperBound, encoder.byteCount < lineBytes {
        append(row..<(row + 1), of: result, to: &encoder, skippingTombstonesThrough: 0)
        row += 1
      }
      let line = encoder.finish(next: position(result, row - 1), more: row < rows.upperBound)
      if lines.isEmpty { lines = line } else { lines += line }
    }
    return lines
  }

  private static func facts(_ page: BucketPage) -> PageFacts {
    PageFacts(
      lastEntryID: page.lastEntryID, hasMore: page.hasMore, headTick: page.head.number,
      bucketLastID: page.bucket.lastID, floor: page.bucket.floorID)
  }

  private static func position(_ result: PostgresResult, _ row: Int) -> SyncPosition {
    SyncPosition(stamp: result.string(row, stampColumn) ?? "", id: result.int(row, 2) ?? 0)
  }

  private static func append(
    _ rows: Range<Int>, of result: PostgresResult, to encoder: inout RowsLineEncoder,
    skippingTombstonesThrough start: Int64
  ) {
    for row in rows {
      guard let id = result.int(row, 2) else { continue }
      let isTombstone = result.isNull(row, dataColumn)
      if isTombstone, id <= start { continue }
      result.withBytes(row: row, column: 0) { table in
        result.withBytes(row: row, column: 1) { object in
          result.withBytes(row: row, column: stampColumn) { stamp in
            result.withBytes(row: row, column: 4) { checksum in
              result.withBytes(row: row, column: dataColumn) { data in
                result.withBytes(row: row, column: 6) { subkey in
                  encoder.append(
                    table: table ?? Self.empty, objectID: object ?? Self.empty,
                    stamp: stamp ?? Self.empty, id: id, checksum: checksum ?? Self.empty,
                    data: isTombstone ? nil : data, subkey: subkey)
                }
              }
            }
          }
        }
      }
    }
  }

  private static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
}
