import SyncProtocol

/// What the gateway has announced in this connection and what of it is not applied yet.
///
/// A plain state machine: it reads no file and no socket. Its actions are for the caller to carry out, in order.
struct DownloadState {
  /// Something to note in the stage.
  enum Action: Equatable {
    /// A new copy of the bucket begins; what was downloaded of it before is void.
    case beginCopy(BucketName, start: Int64)
    /// The bucket is no longer granted; what was downloaded of it is void.
    case discard(BucketName)
  }

  /// What a complete line makes visible.
  struct Completion: Equatable {
    var tick: Int64
    var stamp: String
    var id: Int64
    /// nil = everything.
    var priority: Int?
    /// The announced buckets that become visible, to be verified.
    var buckets: [BucketState]
    /// Every bucket that the replica holds afterwards; nil when that has not changed.
    var keeping: Set<BucketName>?
  }

  private struct Pending {
    var tick: Int64
    var stamp: String
    var id: Int64
    var buckets: [BucketName: BucketState]
  }

  /// The start of each bucket's copy, of those that the gateway and the replica agree to be held.
  private var known: [BucketName: Int64]
  private var pending: Pending?
  private var setChanged = false

  /// Begins with the positions that the request listed.
  init(requested positions: [BucketName: SyncPosition]) {
    known = positions.mapValues { $0.start }
  }

  /// The rows that will be held once the pending checkpoint is complete, of its buckets.
  var announcedCounts: [BucketName: Int64] { pending?.buckets.mapValues { $0.count } ?? [:] }

  /// The tick being downloaded.
  var pendingTick: Int64? { pending?.tick }

  mutating func receive(_ line: CheckpointLine) throws(ReplicaError) -> [Action] {
    if pending == nil, !line.full, known.isEmpty, !line.removed.isEmpty {
      throw .order("Buckets were removed that had not been announced.")
    }
    var actions: [Action] = []
    var next = pending ?? Pending(tick: 0, stamp: "", id: 0, buckets: [:])
    (next.tick, next.stamp, next.id) = (line.tick, line.stamp, line.id)
    for name in line.removed {
      actions.append(.discard(name))
      known[name] = nil
      next.buckets[name] = nil
      setChanged = true
    }
    for bucket in line.buckets {
      if bucket.reset || known[bucket.name] != bucket.start {
        actions.append(.beginCopy(bucket.name, start: bucket.start))
        setChanged = true
      }
      known[bucket.name] = bucket.start
      next.buckets[bucket.name] = bucket
    }
    if line.full {
      let listed = Set(line.buckets.map(\.name))
      for name in known.keys where !listed.contains(name) {
        actions.append(.discard(name))
        known[name] = nil
      }
      next.buckets = next.buckets.filter { listed.contains($0.key) }
      setChanged = true
    }
    pending = next
    return actions
  }

  /// Checks that rows of this bucket may come now.
  func receiveRows(of bucket: BucketName) throws(ReplicaError) {
    guard pending != nil else { throw .order("Rows came before a checkpoint.") }
    guard known[bucket] != nil else { throw .order("Rows came of a bucket that is not announced.") }
  }

  /// What `line` makes visible. `completed` must be called once that is done.
  func complete(_ line: CompleteLine) throws(ReplicaError) -> Completion {
    guard let pending, pending.tick == line.tick else {
      throw .order("A checkpoint was completed that is not the one announced.")
    }
    let buckets = pending.buckets.values.filter { bucket in
      line.priority.map { bucket.priority <= $0 } ?? true
    }
    return Completion(
      tick: pending.tick, stamp: pending.stamp, id: pending.id, priority: line.priority,
      buckets: buckets, keeping: line.priority == nil && setChanged ? Set(known.keys) : nil)
  }

  /// The completion is durable.
  mutating func completed(_ completion: Completion) {
    if completion.priority == nil {
      pending = nil
      setChanged = false
    } else {
      for bucket in completion.buckets { pending?.buckets[bucket.name] = nil }
    }
  }
}
