import SyncProtocol

/// A gateway in memory that follows the protocol's rules, with a source that changes at random, and what a replica must show
/// at each of its ticks.
final class ModelGateway {
  struct Key: Hashable {
    var bucket: Int
    var table: String
    var object: String
    var subkey: String
  }

  struct Entry {
    var id: Int64
    var checksum: UInt64
    var data: String?
    var value: Int64
  }

  /// A row as it must be shown: its text and its number.
  struct Row: Equatable {
    var a: String
    var n: Int64
  }

  struct Cut: Error {}

  var random: Splitmix
  let bucketCount: Int
  private(set) var entries: [Key: Entry] = [:]
  private(set) var granted: Set<Int> = [0, 1, 2]
  private var floors: [Int: Int64] = [:]
  private(set) var tick: Int64 = 0
  private(set) var boundary: Int64 = 0
  /// What a replica shows at a tick, given what was granted then.
  private(set) var expected: [Int64: [String: Row]] = [:]
  let schema: PublishedSchema

  init(seed: UInt64, buckets: Int = 5) {
    random = Splitmix(state: seed)
    bucketCount = buckets
    let columns = [
      PublishedColumn(name: "a", type: .text), PublishedColumn(name: "n", type: .integer),
    ]
    schema = PublishedSchema(tables: [
      PublishedTable(name: "todos", columns: columns),
      PublishedTable(name: "no\"tes", columns: columns),
    ])
    change(40)
  }

  var stamp: String { Stamp.text(microseconds: 1_800_000_000_000_000 + tick) }

  func name(_ bucket: Int) -> BucketName { BucketName("by_list[\"\(bucket)\"]") }

  func priority(_ bucket: Int) -> Int { bucket % 3 + 1 }

  // MARK: The source

  /// Changes the source at random and ticks.
  func change(_ count: Int) {
    var id = boundary
    for _ in 0..<count {
      let key = Key(
        bucket: Int(random.next(below: UInt64(bucketCount))),
        table: random.next(below: 2) == 0 ? "todos" : "no\"tes",
        object: "r\(random.next(below: 30))\u{E9}\"",
        subkey: random.next(below: 4) == 0 ? "s" : "")
      id += 1
      if id % 16 == 0 { id += 1 }
      if random.next(below: 3) == 0 {
        guard entries[key]?.data != nil else { continue }
        entries[key] = Entry(id: id, checksum: 0, data: nil, value: 0)
      } else {
        let value = Int64(random.next(below: 1_000_000))
        entries[key] = Entry(
          id: id, checksum: random.next(),
          data: "{\"a\":\"b\(key.bucket)\\u00e9\\\"\(key.subkey)\",\"later\":[1],\"n\":\(value)}",
          value: value)
      }
    }
    if random.next(below: 6) == 0 {
      let bucket = Int(random.next(below: UInt64(bucketCount)))
      if granted.remove(bucket) == nil { granted.insert(bucket) }
    }
    boundary = (id / 16 + 1) * 16
    tick += 1
    expected[tick] = shown()
  }

  /// Forgets the tombstones of a bucket.
  private func prune(_ bucket: Int) {
    entries = entries.filter { $0.key.bucket != bucket || $0.value.data != nil }
    floors[bucket] = boundary
  }

  private func shown() -> [String: Row] {
    var best: [String: (Int64, Row)] = [:]
    for (key, entry) in entries where granted.contains(key.bucket) && entry.data != nil {
      let row = "\(key.table)/\(key.object)"
      guard best[row].map({ $0.0 < entry.id }) ?? true else { continue }
      best[row] = (entry.id, Row(a: "b\(key.bucket)\u{E9}\"\(key.subkey)", n: entry.value))
    }
    return best.mapValues(\.1)
  }

  // MARK: A session

  /// Sends the lines of one connection: catches up, and then sends `live` further ticks.
  func serve(
    schemaHash: String?, positions: [BucketName: SyncPosition], live: Int,
    _ send: ([UInt8]) async throws -> Void
  ) async throws {
    if random.next(below: 2) == 0 { prune(Int(random.next(below: UInt64(bucketCount)))) }
    if schemaHash != schema.hash { try await send(schema.encodedLine()) }
    var sent: [Int: (through: Int64, start: Int64)] = [:]
    var announced: [Int: BucketState] = [:]
    var isFirst = true
    for _ in 0...live {
      var announcedTick: Int64 = -1
      while announcedTick != tick {
        announcedTick = tick
        let through = boundary
        var line = CheckpointLine(
          tick: tick, stamp: stamp, id: boundary, full: isFirst, buckets: [])
        for bucket in granted.sorted() {
          var reset = false
          if sent[bucket] == nil {
            let position = isFirst ? positions[name(bucket)] : nil
            if let position, position.id <= boundary,
              max(position.id, position.start) >= floors[bucket] ?? 0, random.next(below: 20) != 0
            {
              sent[bucket] = (position.id, position.start)
            } else {
              reset = position != nil || random.next(below: 2) == 0
              sent[bucket] = (-1, boundary)
            }
          }
          let live = entries.filter { $0.key.bucket == bucket && $0.value.data != nil }
          let state = BucketState(
            name: name(bucket), priority: priority(bucket), count: Int64(live.count),
            digest: live.values.reduce(0) { $0 ^ $1.checksum }, start: sent[bucket]?.start ?? 0,
            reset: reset)
          if isFirst || reset || announced[bucket] != state || hasNews(bucket, sent, through) {
            line.buckets.append(state)
          }
          announced[bucket] = state
          announced[bucket]?.reset = false
        }
        for bucket in sent.keys.sorted() where !granted.contains(bucket) {
          if !isFirst { line.removed.append(name(bucket)) }
          sent[bucket] = nil
          announced[bucket] = nil
        }
        isFirst = false
        try await send(line.encodedLine())
        for level in 1...3 {
          for bucket in granted.sorted() where priority(bucket) == level {
            try await sendRows(of: bucket, through: through, &sent, send)
          }
          if announcedTick == tick, level < 3, random.next(below: 2) == 0 {
            try await send(CompleteLine(tick: tick, priority: level).encodedLine())
          }
        }
      }
      try await send(CompleteLine(tick: tick).encodedLine())
      change(Int(random.next(below: 8)) + 1)
    }
  }

  private func hasNews(
    _ bucket: Int, _ sent: [Int: (through: Int64, start: Int64)], _ through: Int64
  ) -> Bool {
    entries.contains { $0.key.bucket == bucket && $0.value.id > sent[bucket]?.through ?? -1 }
  }

  private func sendRows(
    of bucket: Int, through: Int64, _ sent: inout [Int: (through: Int64, start: Int64)],
    _ send: ([UInt8]) async throws -> Void
  ) async throws {
    while let state = sent[bucket] {
      let page = entries.filter {
        $0.key.bucket == bucket && $0.value.id > state.through && $0.value.id <= through
          && ($0.value.data != nil || $0.value.id > state.start)
      }.sorted { $0.value.id < $1.value.id }.prefix(Int(random.next(below: 6)) + 1)
      guard let last = page.last else { return }
      var encoder = RowsLineEncoder(bucket: name(bucket))
      for (key, entry) in page {
        encoder.append(
          RowOperation(
            table: key.table, objectID: key.object, stamp: stamp, id: entry.id,
            checksum: entry.checksum, data: entry.data, subkey: key.subkey))
      }
      sent[bucket]?.through = last.value.id
      try await send(
        encoder.finish(next: SyncPosition(stamp: stamp, id: last.value.id), more: true))
      if random.next(below: 10) == 0 { change(3) }
    }
  }
}

struct Splitmix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func next(below bound: UInt64) -> UInt64 { next() % bound }
}
