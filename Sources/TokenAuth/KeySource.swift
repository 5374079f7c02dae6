package import Foundation

/// Where a verifier looks for keys.
package protocol KeySource: Sendable {
  /// The keys to try at `now`. `identifier` is the token's `kid`: a source that can fetch may look again when it knows none of
  /// that name.
  func keys(identifier: String?, now: Date) async throws(TokenError) -> [VerificationKey]
}

/// Keys that do not change.
package struct FixedKeys: KeySource {
  private let set: JSONWebKeySet

  package init(_ set: JSONWebKeySet) { self.set = set }

  package func keys(identifier: String?, now: Date) -> [VerificationKey] { set.keys }
}

/// Keys published at a URL, kept for a while.
///
/// A set older than `refreshAfter` is fetched again in the background while the old one serves; one that could not be renewed for
/// `dropAfter` is forgotten; an unknown `kid` fetches at once. At most `fetchesPerMinute` fetches are made, so that forged key
/// names cannot turn the gateway against the key server.
package actor RemoteKeys: KeySource {
  package typealias Fetch = @Sendable (URL) async throws -> [UInt8]

  package struct Limits: Sendable {
    package var refreshAfter: TimeInterval = 300
    package var dropAfter: TimeInterval = 3600
    package var fetchesPerMinute = 10

    package init() {}
  }

  private let url: URL
  private let limits: Limits
  private let fetch: Fetch
  private var current: (set: JSONWebKeySet, fetchedAt: Date)?
  private var recentFetches: [Date] = []
  private var running: Task<JSONWebKeySet, any Error>?

  package init(url: URL, limits: Limits = Limits(), fetch: @escaping Fetch) {
    self.url = url
    self.limits = limits
    self.fetch = fetch
  }

  package func keys(identifier: String?, now: Date) async throws(TokenError) -> [VerificationKey] {
    if let current, now.timeIntervalSince(current.fetchedAt) > limits.dropAfter {
      self.current = nil
    }
    guard let current else { return try await refresh(now: now).keys }
    if let identifier, !current.set.keys.contains(where: { $0.identifier == identifier }) {
      if mayFetch(at: now) { return try await refresh(now: now).keys }
    } else if now.timeIntervalSince(current.fetchedAt) > limits.refreshAfter, mayFetch(at: now) {
      // The old set still serves: nobody waits for this fetch, and its failure shows when the set is dropped.
      startFetch(now: now)
    }
    return current.set.keys
  }

  private func mayFetch(at now: Date) -> Bool {
    recentFetches.removeAll { now.timeIntervalSince($0) > 60 }
    return running != nil || recentFetches.count < limits.fetchesPerMinute
  }

  private func refresh(now: Date) async throws(TokenError) -> JSONWebKeySet {
    guard mayFetch(at: now) else {
      throw TokenError(.keySet, "The key set was asked for too often; try again in a minute.")
    }
    let task = startFetch(now: now)
    do {
      return try await task.value
    } catch let error as TokenError {
      throw error
    } catch {
      throw TokenError(.keySet, "The key set cannot be fetched.")
    }
  }

  @discardableResult
  private func startFetch(now: Date) -> Task<JSONWebKeySet, any Error> {
    if let running { return running }
    recentFetches.append(now)
    // Outlives the request that began it, since others may be waiting for the same set: no group has that lifetime.
    let task = Task { [url, fetch] in
      defer { self.fetchEnded() }
      let set = try JSONWebKeySet(json: try await fetch(url), origin: .remote)
      self.current = (set, now)
      return set
    }
    running = task
    return task
  }

  private func fetchEnded() { running = nil }
}
