internal import BucketStorage
internal import SyncProtocol

/// Remembers which row ids are which buckets of the rules in force.
///
/// A bucket of rules that are being built has the name of one in force; it is nobody's until the rules
/// change over.
actor BucketNames {
  private static let limit = 200_000

  private let store: BucketStore
  private var generation: Int64 = -1
  /// The empty name stands for a bucket of other rules.
  private var names: [Int64: BucketName] = [:]

  init(store: BucketStore) {
    self.store = store
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
      let found = try await store.names(of: unknown)
      for id in unknown { names[id] = found[id].map { BucketName($0) } ?? "" }
    }
    var result: [Int64: BucketName] = [:]
    for id in rowIDs {
      if let name = names[id], following.names.contains(name) { result[id] = name }
    }
    return result
  }
}
