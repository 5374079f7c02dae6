package import SyncProtocol

/// What a line did to a replica.
package enum ReplicaEvent: Sendable, Equatable {
  /// A checkpoint is announced; its rows are on their way.
  case announced(CheckpointLine, DownloadProgress)
  /// Rows have come, and more are on their way.
  case progress(DownloadProgress)
  /// A checkpoint is visible and durable.
  case applied(AppliedCheckpoint)
  /// The stream is alive; its token is good for so many seconds.
  case keepalive(tokenExpiresIn: Int64)
  /// The gateway ends the stream with this error.
  case failed(ErrorBody)
  /// Nothing to be told.
  case ignored
}

/// How far a download is.
public struct DownloadProgress: Sendable, Equatable {
  /// Operations that have come.
  public let downloaded: Int64
  /// Operations that will have come; an estimate that is exact for a first download.
  public let expected: Int64

  public init(downloaded: Int64, expected: Int64) {
    self.downloaded = downloaded
    self.expected = expected
  }
}

/// A checkpoint that has become visible.
public struct AppliedCheckpoint: Sendable, Equatable {
  public let tick: Int64
  /// When the gateway made it, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
  public let stamp: String
  /// nil = all buckets; otherwise those up to this priority.
  public let priority: Int?
  /// Rows of the application's tables that were written or deleted.
  public let rowsChanged: Int64
  /// The tables that changed.
  public let tables: Set<String>

  public init(
    tick: Int64, stamp: String, priority: Int?, rowsChanged: Int64, tables: Set<String>
  ) {
    self.tick = tick
    self.stamp = stamp
    self.priority = priority
    self.rowsChanged = rowsChanged
    self.tables = tables
  }
}

/// Which checkpoint a replica shows.
public struct CheckpointTime: Sendable, Equatable {
  public let tick: Int64
  /// When the gateway made it.
  public let stamp: String
  /// When this replica applied it.
  public let appliedAt: String

  public init(tick: Int64, stamp: String, appliedAt: String) {
    self.tick = tick
    self.stamp = stamp
    self.appliedAt = appliedAt
  }
}
