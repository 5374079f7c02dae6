public import SQLiteReplica

/// Where a replica stands with its gateway.
public struct SyncStatus: Sendable, Equatable {
  public enum Connection: Sendable, Equatable {
    /// Nothing is being done: syncing has not begun or has ended.
    case idle
    /// A token is being fetched or the gateway is being asked.
    case connecting
    /// The stream is open.
    case connected
    /// The next attempt is made after this time.
    case waiting(Duration)
  }

  public internal(set) var connection: Connection = .idle
  /// Rows on their way; nil when everything announced is visible.
  public internal(set) var download: DownloadProgress?
  /// The checkpoint that the replica shows.
  public internal(set) var lastCheckpoint: CheckpointTime?
  /// What went wrong last; nil as soon as the gateway answers well again.
  public internal(set) var failure: SyncFailure?
  /// What came of each subscription of the open stream, and of the streams that clients have without asking.
  public internal(set) var subscriptions: [SubscriptionStatus] = []

  public init() {}
}
