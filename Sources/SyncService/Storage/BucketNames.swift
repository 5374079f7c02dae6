internal import Postgres
internal import SyncProtocol

/// Remembers which row ids are which buckets of the rules in force.
///
/// A bucket of rules that are being built has the name of one in force; it is nobody's until the rules
/// change over.
actor BucketNames {
  private static let limit = 200_000

  private let pool: PostgresPool
  private var generation: Int64 = -1
  /// The empty name stands for a bucket of other rules.
  private var names: [Int64: BucketName] = [:]

  init(pool: PostgresPool) {
    self.pool = pool
  }

  /// Those of the row ids that are followed, with their names.
  func named(
    _ rowIDs: [Int64], following: FollowedBuckets, generation: Int64
  ) async throws -> [Int64: BucketName] {
    guard !following.names.isEmpty, !rowIDs.isEmpty else { return [:] }
    if generation != self.generation || names.count > Self.limit {
      self.generation = generation
      names = [:]
    }
    let unknown = rowIDs.filter { names[$0] == nil }
    if !unknown.isEmpty {
      let found = try await pool.withConnection { connection in
        try await connection.query(
          """
          SELECT k.id, d.name || k.key FROM sluice.buckets k
          JOIN sluice.definitions d ON d.id = k.definition AND d.state = 'active'
          WHERE k.id = ANY ($1::bigint[])
          """, [.integerArray(unknown)])
      }
      for id in unknown { names[id] = "" }
      for row in 0..<found.rowCount {
        guard let id = found.int(row, 0), let name = found.string(row, 1) else { continue }
        names[id] = BucketName(name)
      }
    }
    var result: [Int64: BucketName] = [:]
    for id in rowIDs {
      if let name = names[id], following.names.contains(name) { result[id] = name }
    }
    return result
  }
}
