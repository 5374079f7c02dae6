/// How long to wait before the next attempt.
public struct Backoff: Sendable, Equatable {
  /// The wait after the first failure; it doubles with each one that follows.
  public var first: Duration
  /// The longest wait.
  public var longest: Duration

  public init(first: Duration = .seconds(1), longest: Duration = .seconds(300)) {
    self.first = first
    self.longest = longest
  }

  /// The wait after so many failures in a row. `jitter`, from 0 to 1, spreads it over the upper half.
  func delay(failures: Int, jitter: Double) -> Duration {
    let doublings = min(max(failures - 1, 0), 30)
    let whole = min(first * (1 << doublings), longest)
    return whole * (0.5 + 0.5 * min(max(jitter, 0), 1))
  }
}
