/// How often the sequencer looks, and how long it keeps what.
package struct SequencerOptions: Sendable {
  /// The pause after a tick that had work.
  package var busyPeriod: Duration = .milliseconds(20)
  /// The pause when there was nothing to do.
  package var idlePeriod: Duration = .milliseconds(50)
  /// How often tables without captured changes are looked at for rewrites and other partitions.
  package var filesPeriod: Duration = .seconds(1)
  /// How often old history is thrown away and the inbox emptied.
  package var housekeepingPeriod: Duration = .seconds(10)
  /// How often a gateway that is not the leader tries to become it.
  package var leadershipPeriod: Duration = .milliseconds(500)
  /// How long tombstones are kept: a client that was away longer starts its buckets over.
  package var tombstoneRetention: Duration = .seconds(90 * 86_400)
  /// How long ticks are remembered. A stream that is further behind asks everything again.
  package var tickRetention: Duration = .seconds(86_400)
  /// The ticks that are remembered however old they are.
  package var ticksKept: Int64 = 1_000
  /// Rows of a backfill in one tick.
  package var backfillLimit = 10_000

  package init() {}
}
