/// Why a replica could not do something.
public struct ReplicaError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The stable code, such as `SLUICE_REPLICA_OPEN`.
  public let code: String
  /// A sentence for a person. It names tables and buckets, never a row's values.
  public let message: String
  /// SQLite's extended result code, if SQLite said no.
  public let sqliteCode: Int32?

  package init(code: String, message: String, sqliteCode: Int32? = nil) {
    self.code = code
    self.message = message
    self.sqliteCode = sqliteCode
  }

  public var description: String { "\(code): \(message)" }
}

extension ReplicaError {
  /// Lines came in an order that the protocol does not know.
  static func order(_ message: String) -> ReplicaError {
    ReplicaError(code: "SLUICE_REPLICA_ORDER", message: message)
  }

  /// SQLite found no room; what it had written of the transaction is undone.
  static func full(sqliteCode: Int32) -> ReplicaError {
    ReplicaError(
      code: "SLUICE_REPLICA_FULL",
      message: "There is no room for the replica's database: the disk is full.",
      sqliteCode: sqliteCode)
  }

  /// Buckets do not hold what the gateway says that they do.
  static func drifted(_ buckets: [String]) -> ReplicaError {
    ReplicaError(
      code: "SLUICE_REPLICA_DRIFTED",
      message:
        "\(buckets.count) bucket(s) differ from what the gateway announced and are fetched again.")
  }
}
