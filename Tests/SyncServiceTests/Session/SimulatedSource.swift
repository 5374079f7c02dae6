import HTTPServer
import SyncProtocol
import Synchronization

@testable import SyncService

/// A database in memory that keeps entries as the storage does: the current version of each row, with
/// ids that rise by ticks, and tombstones.
///
/// Ticks can be made at any moment, also between the pages of a stream.
final class SimulatedSource: StreamSource {
  struct Entry: Equatable {
    var id: Int64
    var checksum: UInt64
    var value: Int?
  }

  struct Bucket {
    var rowID: Int64
    var entries: [String: Entry] = [:]
    var floor: Int64 = 0

    var lastID: Int64 { entries.values.map(\.id).max() ?? 0 }
    var live: [String: Int] { entries.compactMapValues(\.value) }
  }

  struct State {
    var number: Int64 = 1
    var generation: Int64 = 1
    var nextID: Int64 = 17
    var buckets: [BucketName: Bucket] = [:]
    /// The buckets granted, which are decided by one lookup key.
    var granted: Set<BucketName> = []
    /// What could be seen at each tick.
    var history: [Int64: [BucketName: [String: Int]]] = [:]
    var changed: [Int64: Set<BucketName>] = [:]
    var lookupChanges: Set<Int64> = []
    var boundaries: [Int64: Int64] = [1: 16]
    var failure: (any Error)?
    var calls = 0
    var pages = 0
  }

  let state = Mutex(State())
  /// Called before every answer, to let ticks happen in the middle of a stream.
  let meanwhile: @Sendable (SimulatedSource, Int) -> Void
  let pageLimit: Int

  static let key = LookupKey(lookup: 1, key: "[\"u\"]")

  init(
    pageLimit: Int = 2, meanwhile: @escaping @Sendable (SimulatedSource, Int) -> Void = { _, _ in }
  ) {
    self.pageLimit = pageLimit
    self.meanwhile = meanwhile
    state.withLock { $0.remember() }
  }

  /// One tick: rows set to a value or removed (nil), and what is granted from now on.
  func tick(_ changes: [(BucketName, String, Int?)] = [], grant: Set<BucketName>? = nil) {
    state.withLock { state in
      state.number += 1
      for (name, row, value) in changes {
        var bucket = state.buckets[name] ?? Bucket(rowID: Int64(state.buckets.count + 1))
        guard value != nil || bucket.entries[row] != nil else { continue }
        if state.nextID % 16 == 0 { state.nextID += 1 }
        let id = state.nextID
        state.nextID += 1
        let checksum = value == nil ? 0 : UInt64(id) &* 0x9E37_79B9_7F4A_7C15
        bucket.entries[row] = Entry(id: id, checksum: checksum, value: value)
        state.buckets[name] = bucket
        state.changed[state.number, default: []].insert(name)
      }
      if let grant {
        state.granted = grant
        state.lookupChanges.insert(state.number)
      }
      state.nextID = (state.nextID + 15) / 16 * 16
      state.boundaries[state.number] = state.nextID
      state.nextID += 1
      state.remember()
    }
  }

  /// Forgets tombstones, as retention does.
  func prune() {
    state.withLock { state in
      for (name, bucket) in state.buckets {
        let dead = bucket.entries.filter { $0.value.value == nil }
        guard let last = dead.values.map(\.id).max() else { continue }
        state.buckets[name]?.floor = last
        for row in dead.keys { state.buckets[name]?.entries[row] = nil }
      }
    }
  }

  private func answer<Result>(_ body: (inout State) throws -> Result) throws -> Result {
    let calls = state.withLock { state in
      state.calls += 1
      return state.calls
    }
    meanwhile(self, calls)
    return try state.withLock { state in
      if let failure = state.failure { throw failure }
      return try body(&state)
    }
  }

  func head() async throws -> TickFacts { try answer { $0.tick } }

  func schema() async throws -> PublishedSchema {
    PublishedSchema(
      tables: [PublishedTable(name: "t", columns: [PublishedColumn(name: "v", type: .integer)])])
  }

  func view(of request: ViewRequest) async throws -> StreamView {
    try answer { state in
      StreamView(
        tick: state.tick, generation: state.generation,
        buckets: state.granted.sorted().map { state.facts($0) }, lookups: [Self.key])
    }
  }

  func survival(of positions: [SyncPosition]) async throws -> [Bool] {
    try answer { state in positions.map { $0.id <= state.tick.boundary } }
  }

  func page(_ request: StreamSession.StateMachine.PageRequest) async throws -> EncodedPage? {
    try answer { state in
      let entries = state.entries(
        of: request.bucket, after: request.after, through: request.through)
      let shown = entries.prefix(pageLimit)
      state.pages += 1
      let more = entries.count > shown.count
      let facts = PageFacts(
        lastEntryID: shown.last?.1.id, hasMore: more, headTick: state.number,
        bucketLastID: state.facts(request.bucket).lastID, floor: state.facts(request.bucket).floor)
      return EncodedPage(
        facts: facts, line: Self.line(request.bucket, shown, more: more), operations: shown.count)
    }
  }

  func rows(
    _ request: StreamSession.StateMachine.PageRequest, limit: Int, end: SyncPosition
  ) async throws -> RowsBody? {
    try await page(request).map { RowsBody(facts: $0.facts, body: $0.line ?? SharedBytes([])) }
  }

  func changes(
    after tick: TickFacts, following: FollowedBuckets
  ) async throws -> SourceChanges? {
    try answer { state in
      var changed: Set<BucketName> = []
      var asks = false
      for number in (tick.number + 1)..<(state.number + 1) {
        changed.formUnion(state.changed[number] ?? [])
        if state.lookupChanges.contains(number) { asks = true }
      }
      let buckets = changed.intersection(following.names).sorted().map { name in
        let entries = state.entries(of: name, after: tick.boundary, through: state.tick.boundary)
        return SourceChanges.Bucket(
          facts: state.facts(name), lines: Self.line(name, entries[...], more: false))
      }
      return SourceChanges(
        tick: state.tick, generation: state.generation, buckets: buckets,
        lookups: asks ? [Self.key] : [])
    }
  }

  private static func line(
    _ bucket: BucketName, _ entries: ArraySlice<(String, Entry)>, more: Bool
  ) -> SharedBytes {
    var encoder = RowsLineEncoder(bucket: bucket)
    for (row, entry) in entries {
      encoder.append(
        RowOperation(
          table: "t", objectID: row, stamp: State.stamp, id: entry.id, checksum: entry.checksum,
          data: entry.value.map { "{\"v\":\($0)}" }))
    }
    return SharedBytes(
      encoder.finish(
        next: SyncPosition(stamp: State.stamp, id: entries.last?.1.id ?? 0), more: more))
  }
}

extension SimulatedSource.State {
  static let stamp = "2026-01-01T00:00:00.000000Z"

  var tick: TickFacts {
    TickFacts(number: number, stamp: Self.stamp, boundary: boundaries[number] ?? 16)
  }

  func facts(_ name: BucketName) -> BucketFacts {
    guard let bucket = buckets[name] else { return BucketFacts(name: name, rowID: nil) }
    let digest = bucket.entries.values.reduce(UInt64(0)) { $0 ^ $1.checksum }
    return BucketFacts(
      name: name, rowID: bucket.rowID, count: Int64(bucket.live.count),
      digest: String(digest, radix: 16), lastID: max(bucket.lastID, bucket.floor),
      floor: bucket.floor)
  }

  func entries(
    of name: BucketName, after: Int64, through: Int64
  ) -> [(String, SimulatedSource.Entry)] {
    (buckets[name]?.entries ?? [:]).filter { $0.value.id > after && $0.value.id <= through }
      .sorted { $0.value.id < $1.value.id }.map { ($0.key, $0.value) }
  }

  mutating func remember() {
    var seen: [BucketName: [String: Int]] = [:]
    for name in granted { seen[name] = buckets[name]?.live ?? [:] }
    history[number] = seen
  }
}
