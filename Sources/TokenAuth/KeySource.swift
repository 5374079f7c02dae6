package import Foundation

/// Where a verifier looks for keys.
package protocol KeySource: Sendable {
  /// The keys to try at `now`. `identifier` is the token's `kid`: a source that can fetch may look again when it knows none of
  /// that name.
  func keys(identifier: String?, now: Date) async throws(TokenError) -> [VerificationKey]
}

/// Hears how many keys a source has after it read them anew, or why it goes on with the old ones.
package typealias KeyReport = @Sendable (Result<Int, TokenError>) -> Void

/// Keys that do not change.
package struct FixedKeys: KeySource {
  private let set: JSONWebKeySet

  package init(_ set: JSONWebKeySet) { self.set = set }

  package func keys(identifier: String?, now: Date) -> [VerificationKey] { set.keys }
}
