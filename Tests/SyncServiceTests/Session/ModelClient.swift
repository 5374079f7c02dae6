import Foundation
import HTTPServer
import SyncProtocol
import Synchronization
import Testing

@testable import SyncService

/// A replica in memory that follows the protocol to the letter and complains about what it does not
/// allow.
final class ModelClient: LineWriter {
  struct Cut: Error {}

  struct Copy: Equatable {
    var start: Int64
    var rows: [String: (value: Int, checksum: UInt64)] = [:]
    var position: SyncPosition

    static func == (left: Copy, right: Copy) -> Bool {
      left.start == right.start && left.rows.mapValues(\.value) == right.rows.mapValues(\.value)
    }
  }

  struct State {
    var copies: [BucketName: Copy] = [:]
    var announced: [BucketName: BucketState] = [:]
    var checkpoint: CheckpointLine?
    var completes: [(tick: Int64, rows: [BucketName: [String: Int]])] = []
    var faults: [String] = []
    var errors: [ErrorBody] = []
    var keepalives: [Int64] = []
    var linesLeft = Int.max
    var partials: [Int] = []
    var resets: [BucketName] = []
    /// Every row that was ever received, whatever became of it.
    var received: Set<String> = []
    var splitter = LineSplitter()
    /// What came of the streams, as last told.
    var streams: [StreamState] = []
  }

  let state = Mutex(State())
  let subscriptions: [StreamSubscription]
  let onComplete: @Sendable (Int) -> Void

  init(
    subscriptions: [StreamSubscription] = [],
    onComplete: @escaping @Sendable (Int) -> Void = { _ in }
  ) {
    self.subscriptions = subscriptions
    self.onComplete = onComplete
  }

  var request: StreamRequest {
    state.withLock { state in
      StreamRequest(
        buckets: state.copies.mapValues { copy in
          SyncPosition(stamp: copy.position.stamp, id: copy.position.id, start: copy.start)
        }, subscriptions: subscriptions)
    }
  }

  func write(_ bytes: SharedBytes) async throws {
    let count: Int? = try state.withLock { state in
      state.splitter.append(bytes.withUnsafeBytes { Array($0) })
      var completes: Int?
      while let line = try state.splitter.next() {
        guard state.linesLeft > 0 else { throw Cut() }
        state.linesLeft -= 1
        try state.read(line)
        if case .complete? = try? SyncLine(decoding: line) { completes = state.completes.count }
      }
      return completes
    }
    if let count { onComplete(count) }
  }
}

extension ModelClient.State {
  mutating func read(_ line: [UInt8]) throws {
    switch try SyncLine(decoding: line) {
    case .checkpoint(let checkpoint): announce(checkpoint)
    case .rows: try rows(line)
    case .complete(let complete): self.complete(complete)
    case .error(let error): errors.append(error)
    case .keepalive(let line): keepalives.append(line.tokenExpiresIn)
    case .schema: break
    case .unknown(let key): faults.append("unknown line \(key)")
    }
  }

  private mutating func announce(_ line: CheckpointLine) {
    if line.full {
      announced = [:]
      let listed = Set(line.buckets.map(\.name))
      for name in copies.keys where !listed.contains(name) { copies[name] = nil }
    }
    for name in line.removed {
      copies[name] = nil
      announced[name] = nil
    }
    for bucket in line.buckets {
      announced[bucket.name] = bucket
      if bucket.reset { resets.append(bucket.name) }
      if bucket.reset || copies[bucket.name] == nil {
        copies[bucket.name] = ModelClient.Copy(
          start: bucket.start,
          position: SyncPosition(stamp: line.stamp, id: 0, start: bucket.start))
      }
      if copies[bucket.name]?.start != bucket.start {
        faults.append("\(bucket.name) has another start without a reset")
      }
    }
    checkpoint = line
    streams = line.streams ?? (line.full ? [] : streams)
  }

  private mutating func rows(_ line: [UInt8]) throws {
    var copies = copies
    var faults: [String] = []
    guard let checkpoint else { return self.faults.append("rows before a checkpoint") }
    var operations: [(String, Int64, UInt64, Int?)] = []
    var stamp = ""
    let header = try RowsLineDecoder.decode(line) { operation in
      let data = operation.data.map { String(decoding: $0, as: UTF8.self) }
      let value = data.flatMap(Self.value)
      stamp = operation.stamp.string
      operations.append((operation.objectID.string, operation.id, operation.checksum, value))
    }
    guard var copy = copies[header.bucket], announced[header.bucket] != nil else {
      return self.faults.append("rows of a bucket that is not announced")
    }
    for (row, id, checksum, value) in operations {
      received.insert(row)
      if id <= copy.position.id { faults.append("an id at or below the position") }
      if id > checkpoint.id { faults.append("an id above the checkpoint") }
      copy.position.id = id
      copy.rows[row] = value.map { ($0, checksum) }
    }
    copy.position.stamp = stamp
    copies[header.bucket] = copy
    self.copies = copies
    self.faults += faults
  }

  /// The number that is the member `v`.
  private static func value(_ json: String) -> Int? {
    guard let range = json.range(of: "\"v\":") else { return nil }
    return Int(json[range.upperBound...].prefix { $0.isNumber })
  }

  private mutating func complete(_ line: CompleteLine) {
    guard let checkpoint, line.tick == checkpoint.tick else {
      return faults.append("a complete without its checkpoint")
    }
    if let priority = line.priority { return partials.append(priority) }
    for (name, copy) in copies {
      guard let bucket = announced[name] else {
        faults.append("\(name) is held and not announced")
        continue
      }
      let digest = copy.rows.values.reduce(UInt64(0)) { $0 ^ $1.checksum }
      if digest != bucket.digest { faults.append("digest of \(name) at \(line.tick)") }
      if Int64(copy.rows.count) != bucket.count { faults.append("count of \(name)") }
      copies[name]?.position.id = checkpoint.id
      copies[name]?.position.stamp = checkpoint.stamp
    }
    completes.append((line.tick, copies.mapValues { $0.rows.mapValues(\.value) }))
  }
}
