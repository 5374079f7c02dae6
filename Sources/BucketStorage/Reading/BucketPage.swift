package import Postgres

/// The head of an answer: four columns that say which tick it shows.
struct ResultHead {
  let tick: Tick
  let generation: Int64

  init?(_ result: PostgresResult, row: Int, column: Int) {
    guard row < result.rowCount, let number = result.int(row, column),
      let stamp = result.string(row, column + 1), let boundary = result.int(row, column + 2),
      let generation = result.int(row, column + 3)
    else { return nil }
    tick = Tick(number: number, stamp: stamp, boundaryID: boundary)
    self.generation = generation
  }
}

/// Some entries of one bucket, as the server sent them.
///
/// The columns of `result` are object type, object id, entry id, stamp, checksum in hexadecimal, data
/// (NULL in a tombstone) and subkey; the rows of entries are `rows`.
package struct BucketPage: Sendable {
  package let result: PostgresResult
  package let rows: Range<Int>
  /// The tick in force in the page's snapshot.
  package let head: Tick
  package let generation: Int64
  package let bucket: BucketHead
  /// Whether entries up to the requested id can remain after this page.
  package let hasMore: Bool
  package let lastEntryID: Int64?
  /// The bytes of the next entry's data, when it was larger than the page could be and nothing stands
  /// before it.
  package let oversize: Int?

  init?(_ result: PostgresResult, bucket: Int64, through: Int64) {
    guard let head = ResultHead(result, row: 0, column: 0) else { return nil }
    let ends = (result.firstString(6) ?? "").split(separator: ",").compactMap { Int64($0) }
    self.result = result
    self.head = head.tick
    generation = head.generation
    rows = 1..<max(result.rowCount, 1)
    // A bucket that was forgotten cannot be followed from anywhere.
    let lastID = ends.first ?? 0
    let next = ends.count == 3 ? ends[2] : 0
    self.bucket = BucketHead(
      rowID: bucket, count: result.firstInt(4) ?? 0,
      digest: result.firstString(5) ?? BucketHead.noDigest,
      lastID: lastID, floorID: ends.count == 3 ? ends[1] : head.tick.boundaryID)
    lastEntryID = rows.isEmpty ? nil : result.int(result.rowCount - 1, 2)
    hasMore = lastEntryID.map { $0 < min(through, lastID) } ?? false
    oversize = rows.isEmpty && next > 0 ? Int(next) : nil
  }
}

extension BucketHead {
  package static let noDigest = "0000000000000000"
}

/// The entries that several buckets got since a tick, as far as the limits let them. Columns as in `BucketPage`, and the bucket's row id
/// in the eighth.
package struct LiveEntries: Sendable {
  package static let bucketColumn = 7

  package let result: PostgresResult
  package let rows: Range<Int>
  package let head: Tick
  package let generation: Int64
  package let buckets: [BucketHead]

  /// The buckets of which nothing is lacking.
  package let whole: Set<Int64>

  init?(_ result: PostgresResult, after: Int64) {
    guard let head = ResultHead(result, row: 0, column: 0) else { return nil }
    self.result = result
    self.head = head.tick
    generation = head.generation
    var buckets: [BucketHead] = []
    var row = 1
    while row < result.rowCount, result.isNull(row, 0) {
      buckets.append(
        BucketHead(
          rowID: result.int(row, 7) ?? 0, count: result.int(row, 1) ?? 0,
          digest: result.string(row, 3) ?? BucketHead.noDigest, lastID: result.int(row, 2) ?? 0,
          floorID: result.int(row, 5) ?? head.tick.boundaryID))
      row += 1
    }
    self.buckets = buckets
    rows = row..<result.rowCount
    var last: [Int64: Int64] = [:]
    for row in rows {
      guard let bucket = result.int(row, Self.bucketColumn) else { continue }
      last[bucket] = result.int(row, 2)
    }
    whole = Set(buckets.filter { last[$0.rowID] ?? after >= $0.lastID }.map(\.rowID))
  }
}
