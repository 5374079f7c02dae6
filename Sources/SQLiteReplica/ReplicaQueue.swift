import Dispatch

/// The queue that a replica's actor runs on, so that waiting for the disk blocks no thread of the cooperative pool.
final class ReplicaQueue: SerialExecutor {
  private let queue = DispatchQueue(label: "sluice.replica", qos: .userInitiated)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Runs work that belongs on the queue before there is an actor.
  func run(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

  func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
