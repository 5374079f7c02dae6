/// A long-running part of a process.
package protocol Service: Sendable {
  /// The name in logs.
  var name: String { get }

  /// Works until asked to stop, by `StopSignal.current` or by cancellation, and returns once everything
  /// is put away. Returning unasked stops the whole process.
  func run() async throws
}
