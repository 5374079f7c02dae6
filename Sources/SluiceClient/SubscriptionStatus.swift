import SyncProtocol

/// What came of one subscription.
public struct SubscriptionStatus: Sendable, Equatable {
  public let stream: String
  /// The text of a JSON object; nil for a stream that clients have without asking.
  public let parameters: String?
  /// Whether the replica has shown all of it, as the gateway had it when it was subscribed to.
  public internal(set) var hasSynced = false
  /// Why it gives nothing, or not everything.
  public internal(set) var failure: SyncFailure?
}

/// Follows, through the lines of a stream, what comes of the subscriptions that it was opened with.
struct SubscriptionTracker {
  private var asked: [StreamSubscription] = []
  private var streams: [StreamState] = []
  private var buckets: [BucketName: (priority: Int, subscriptions: [Int])] = [:]
  private var synced: Set<Key> = []

  private struct Key: Hashable {
    var stream: BucketName
    var parameters: String?
  }

  /// A stream is being opened with these.
  mutating func open(_ subscriptions: [StreamSubscription]) {
    asked = subscriptions
    streams = []
    buckets = [:]
    let kept = Set(subscriptions.map { key($0) })
    synced = synced.filter { $0.parameters == nil || kept.contains($0) }
  }

  mutating func announced(_ line: CheckpointLine) {
    if line.full {
      buckets = [:]
      streams = []
    }
    for name in line.removed { buckets[name] = nil }
    for bucket in line.buckets {
      buckets[bucket.name] = (bucket.priority, bucket.subscriptions)
    }
    if let news = line.streams { streams = news }
  }

  /// Everything up to `priority`, or everything at all, is visible.
  mutating func applied(priority: Int?) {
    guard let priority else {
      synced.formUnion(asked.map { key($0) })
      synced.formUnion(
        streams.filter(\.isDefault).map { Key(stream: BucketName($0.name), parameters: nil) })
      return
    }
    var last: [Int: Int] = [:]
    for bucket in buckets.values {
      for place in bucket.subscriptions { last[place] = max(last[place] ?? 0, bucket.priority) }
    }
    for (place, subscription) in asked.enumerated() where last[place] ?? .max <= priority {
      synced.insert(key(subscription))
    }
  }

  /// First what is there without asking, then what was asked for, in its order.
  var statuses: [SubscriptionStatus] {
    var failures: [Int?: SyncFailure] = [:]
    for error in streams.flatMap(\.errors) where error.subscription != nil {
      failures[error.subscription] = SyncFailure(error)
    }
    let defaults = streams.filter(\.isDefault).map { stream in
      status(
        Key(stream: BucketName(stream.name), parameters: nil),
        stream.errors.first { $0.subscription == nil }.map { SyncFailure($0) })
    }
    return defaults
      + asked.enumerated().map { place, subscription in
        status(key(subscription), failures[place])
      }
  }

  private func status(_ key: Key, _ failure: SyncFailure?) -> SubscriptionStatus {
    SubscriptionStatus(
      stream: key.stream.text, parameters: key.parameters,
      hasSynced: failure == nil && synced.contains(key), failure: failure)
  }

  private func key(_ subscription: StreamSubscription) -> Key {
    Key(stream: BucketName(subscription.stream), parameters: subscription.parametersJSON)
  }
}
