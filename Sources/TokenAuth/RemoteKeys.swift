package import Foundation

/// Keys published at a URL, kept for a while.
///
/// A set older than `refreshAfter` is fetched again in the background while the old one serves; one that
/// could not be renewed for `dropAfter` is forgotten. A name that is unknown fetches at once, but not
/// sooner after the last fetch than `interval`, so that forged names cannot turn the gateway against the
/// key server. While the keys that could be meant cannot be had, the error is one of the service and not
/// of the token.
package actor RemoteKeys: KeySource {
  /// Has to come to an end by itself: tokens wait for it.
  package typealias Fetch = @Sendable (URL) async throws -> [UInt8]

  package struct Limits: Sendable {
    package var refreshAfter: TimeInterval = 300
    package var dropAfter: TimeInterval = 3600
    /// Between a fetch and the next one for a key that is unknown.
    package var interval: TimeInterval = 10
    /// Between a fetch that failed and the next one, while there are no keys at all.
    package var retryAfter: TimeInterval = 1

    package init() {}
  }

  private let url: URL
  private let limits: Limits
  private let report: KeyReport
  private let fetch: Fetch
  private var current: (set: JSONWebKeySet, fetchedAt: Date)?
  private var lastFetch: (at: Date, failure: TokenError?)?
  private var running: Task<Result<JSONWebKeySet, TokenError>, Never>?

  package init(
    url: URL, limits: Limits = Limits(), report: @escaping KeyReport = { _ in },
    fetch: @escaping Fetch
  ) {
    self.url = url
    self.limits = limits
    self.report = report
    self.fetch = fetch
  }

  package func keys(identifier: String?, now: Date) async throws(TokenError) -> [VerificationKey] {
    if let current, now.timeIntervalSince(current.fetchedAt) > limits.dropAfter {
      self.current = nil
    }
    guard let current else {
      return try await refresh(notSoonerThan: limits.retryAfter, now: now)?.keys ?? []
    }
    if let identifier, !current.set.keys.contains(where: { $0.identifier == identifier }) {
      return try await refresh(notSoonerThan: limits.interval, now: now)?.keys ?? current.set.keys
    }
    if now.timeIntervalSince(current.fetchedAt) > limits.refreshAfter,
      sinceLastFetch(now) >= limits.interval
    {
      // The old set still serves: nobody waits for this fetch.
      startFetch(now: now)
    }
    return current.set.keys
  }

  private func sinceLastFetch(_ now: Date) -> TimeInterval {
    lastFetch.map { now.timeIntervalSince($0.at) } ?? .infinity
  }

  /// Fetches, or joins those who wait for a fetch; nil when the last one was good and is too recent.
  private func refresh(
    notSoonerThan pause: TimeInterval, now: Date
  ) async throws(TokenError) -> JSONWebKeySet? {
    if running == nil, sinceLastFetch(now) < pause {
      if let failure = lastFetch?.failure { throw failure }
      return nil
    }
    return try await startFetch(now: now).value.get()
  }

  @discardableResult
  private func startFetch(now: Date) -> Task<Result<JSONWebKeySet, TokenError>, Never> {
    if let running { return running }
    lastFetch = (now, nil)
    // Outlives the request that began it, since others may be waiting for the same set: no group has that lifetime.
    let task = Task { [url, fetch] in
      let result = await Self.fetched(url, fetch)
      self.ended(result, startedAt: now)
      return result
    }
    running = task
    return task
  }

  private static func fetched(
    _ url: URL, _ fetch: Fetch
  ) async -> Result<JSONWebKeySet, TokenError> {
    let bytes: [UInt8]
    do {
      bytes = try await fetch(url)
    } catch {
      return .failure(TokenError(.keySet, "The key set cannot be fetched."))
    }
    return Result { () throws(TokenError) in try JSONWebKeySet(json: bytes, origin: .remote) }
  }

  private func ended(_ result: Result<JSONWebKeySet, TokenError>, startedAt: Date) {
    running = nil
    switch result {
    case .success(let set):
      current = (set, startedAt)
      report(.success(set.keys.count))
    case .failure(let error):
      lastFetch = (startedAt, error)
      report(.failure(error))
    }
  }
}
