import Foundation

/// A value of a row, as far as the wire and SQLite tell kinds apart.
enum Value: Hashable, CustomStringConvertible {
  case null
  case number(String)
  case text(String)

  init(_ json: Any?) {
    switch json {
    case let text as String: self = .text(text)
    case let number as NSNumber:
      // PostgreSQL's JSON writes the double 2 as 2, the wire as 2.0.
      let text = number.stringValue
      self = .number(text.hasSuffix(".0") ? String(text.dropLast(2)) : text)
    default: self = .null
    }
  }

  var description: String {
    switch self {
    case .null: "NULL"
    case .number(let text): text
    case .text(let text): "'\(text)'"
    }
  }

  var integer: Int? { if case .number(let text) = self { Int(text) } else { nil } }
  var string: String? { if case .text(let text) = self { text } else { nil } }
}

typealias Row = [String: Value]

/// What a replica shows: table → id → row without its id.
typealias Content = [String: [String: Row]]

/// A client's state, kept by the rules of the protocol and by nothing else: the reference for the real replica.
struct WireState {
  struct EntryKey: Hashable {
    let table: String
    let id: String
    let subkey: String
  }

  struct Entry {
    let id: Int64
    let checksum: UInt64
    let row: Row
  }

  struct Copy {
    let start: Int64
    var position: (stamp: String, id: Int64)?
    var entries: [EntryKey: Entry] = [:]
  }

  struct Announced {
    let count: Int
    let digest: String
    let priority: Int
  }

  enum Event {
    case none
    case complete(tick: Int)
    case error(code: String, message: String)
  }

  private(set) var committed: [String: Copy] = [:]
  private(set) var staged: [String: Copy] = [:]
  private(set) var announced: [String: Announced] = [:]
  /// What the server did against the protocol.
  private(set) var violations: [String] = []
  private(set) var opsReceived = 0
  private(set) var resets = 0
  /// Every (table, id) that ever came over the wire, tombstones included.
  private(set) var keysReceived: Set<String> = []
  private(set) var tick = 0
  private(set) var schemaHash: String?
  /// What was told to be wrong with subscriptions, each as `place code`.
  private(set) var troubles: [String] = []
  private var checkpoint: (tick: Int, stamp: String, id: Int64)?
  private var isFirstCheckpoint = true

  /// What the connection's request says of the buckets held; `keepingStaged` goes on inside an interrupted download.
  mutating func beginConnection(keepingStaged: Bool) -> [String: String] {
    if !keepingStaged { staged = committed }
    // A copy of which nothing came is not told of, and so begins again.
    staged = staged.filter { $0.value.position != nil }
    announced = [:]
    checkpoint = nil
    isFirstCheckpoint = true
    return staged.compactMapValues { copy in
      copy.position.map { "\($0.stamp),\($0.id),\(copy.start)" }
    }
  }

  mutating func receive(_ line: [UInt8]) throws -> Event {
    guard
      let object = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any],
      object.count == 1, let (key, value) = object.first, let body = value as? [String: Any]
    else {
      violations.append("not an object with one key: \(String(decoding: line, as: UTF8.self))")
      return .none
    }
    switch key {
    case "schema":
      schemaHash = body["hash"] as? String
    case "checkpoint":
      receiveCheckpoint(body)
    case "rows":
      receiveRows(body)
    case "complete":
      guard body["priority"] as? Int == nil else { return .none }
      return complete()
    case "keepalive":
      break
    case "error":
      return .error(
        code: body["code"] as? String ?? "", message: body["message"] as? String ?? "")
    default:
      violations.append("unknown line \(key)")
    }
    return .none
  }

  /// What the application would see: of one row in several buckets the newest entry counts.
  var content: Content {
    var newest: [EntryKey: Entry] = [:]
    for copy in committed.values {
      for (key, entry) in copy.entries {
        let plain = EntryKey(table: key.table, id: key.id, subkey: "")
        if let other = newest[plain], other.id >= entry.id { continue }
        newest[plain] = entry
      }
    }
    var content: Content = [:]
    for (key, entry) in newest { content[key.table, default: [:]][key.id] = entry.row }
    return content
  }

  // MARK: - Lines

  private mutating func receiveCheckpoint(_ body: [String: Any]) {
    guard
      let tick = body["tick"] as? Int, let stamp = body["stamp"] as? String,
      let id = body["id"] as? Int, let isFull = body["full"] as? Bool,
      let buckets = body["buckets"] as? [[String: Any]]
    else {
      violations.append("a checkpoint without its members: \(body.keys.sorted())")
      return
    }
    if isFull != isFirstCheckpoint { violations.append("full: \(isFull) at the wrong moment") }
    if let earlier = checkpoint, earlier.tick > tick {
      violations.append("tick \(tick) after \(earlier.tick)")
    }
    isFirstCheckpoint = false
    checkpoint = (tick, stamp, Int64(id))
    if isFull { announced = [:] }
    for bucket in buckets {
      guard
        let name = bucket["name"] as? String, let count = bucket["count"] as? Int,
        let digest = bucket["digest"] as? String, let start = bucket["start"] as? Int,
        let reset = bucket["reset"] as? Bool
      else {
        violations.append("a bucket without its members: \(bucket.keys.sorted())")
        continue
      }
      announced[name] = Announced(
        count: count, digest: digest, priority: bucket["priority"] as? Int ?? -1)
      if let held = staged[name], !reset {
        if held.start != Int64(start) {
          violations.append("\(name) starts at \(start), held from \(held.start)")
        }
      } else {
        if reset {
          resets += 1
          // Another database, or one that was restored, counts its ticks anew.
          self.tick = 0
        }
        staged[name] = Copy(start: Int64(start))
      }
    }
    for name in body["removed"] as? [String] ?? [] { announced[name] = nil }
    if isFull { troubles = [] }
    if let streams = body["streams"] as? [[String: Any]] {
      let errors = streams.flatMap { $0["errors"] as? [[String: Any]] ?? [] }
      troubles = errors.map {
        "\($0["subscription"] as? Int ?? -1) \($0["code"] as? String ?? "")"
      }.sorted()
    }
    staged = staged.filter { announced[$0.key] != nil }
  }

  private mutating func receiveRows(_ body: [String: Any]) {
    guard let name = body["bucket"] as? String, let ops = body["ops"] as? [[Any]] else {
      violations.append("rows without their members")
      return
    }
    guard var copy = staged.removeValue(forKey: name) else {
      violations.append("rows for \(name), which is not announced")
      return
    }
    for op in ops {
      guard
        op.count >= 6, let table = op[0] as? String, let id = op[1] as? String,
        let stamp = op[2] as? String, let entryID = op[3] as? Int, let checksum = op[4] as? String
      else {
        violations.append("an op without its members: \(op.count)")
        continue
      }
      opsReceived += 1
      keysReceived.insert("\(table)/\(id)")
      if let last = copy.position, last.id >= Int64(entryID) {
        violations.append("\(name): op \(entryID) after \(last.id)")
      }
      if entryID % 16 == 0 { violations.append("\(name): op \(entryID) is a boundary") }
      copy.position = (stamp, Int64(entryID))
      let key = EntryKey(table: table, id: id, subkey: op.count > 6 ? op[6] as? String ?? "" : "")
      if let data = op[5] as? [String: Any] {
        var row = data.mapValues { Value($0) }
        row["id"] = nil
        copy.entries[key] = Entry(
          id: Int64(entryID), checksum: UInt64(checksum, radix: 16) ?? 0, row: row)
      } else {
        copy.entries[key] = nil
      }
    }
    staged[name] = copy
  }

  private mutating func complete() -> Event {
    guard let checkpoint else {
      violations.append("complete without a checkpoint")
      return .none
    }
    for (name, expected) in announced {
      guard let copy = staged[name] else { continue }
      let digest = copy.entries.values.reduce(UInt64(0)) { $0 ^ $1.checksum }
      if copy.entries.count != expected.count || digest != UInt64(expected.digest, radix: 16) {
        violations.append(
          "\(name) at tick \(checkpoint.tick): \(copy.entries.count) entries with digest "
            + "\(String(digest, radix: 16)), announced \(expected.count) with \(expected.digest)")
      }
      if let position = copy.position, position.id > checkpoint.id {
        violations.append("\(name) holds \(position.id), beyond checkpoint \(checkpoint.id)")
      }
      staged[name]?.position = (checkpoint.stamp, checkpoint.id)
    }
    if checkpoint.tick < tick { violations.append("complete \(checkpoint.tick) after \(tick)") }
    tick = checkpoint.tick
    committed = staged
    return .complete(tick: tick)
  }
}
