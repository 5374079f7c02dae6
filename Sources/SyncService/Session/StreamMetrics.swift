package import ServiceRuntime

/// The numbers that streams keep.
package struct StreamMetrics: Sendable {
  let operations: Counter
  let checkpoints: Counter
  let overruns: Counter
  let open: Gauge
  let starting: Gauge
  let followers: Gauge

  package init(_ metrics: Metrics) {
    operations = metrics.counter(
      "sluice_operations_sent_total", "Rows and tombstones sent in pages.")
    checkpoints = metrics.counter("sluice_checkpoints_sent_total", "Complete checkpoints sent.")
    overruns = metrics.counter(
      "sluice_feed_overruns_total", "Streams that left the live feed because they read too slowly.")
    open = metrics.gauge("sluice_streams_open", "Streams that are open.")
    starting = metrics.gauge(
      "sluice_streams_starting", "Streams that have not completed their first checkpoint.")
    followers = metrics.gauge("sluice_feed_followers", "Streams at the live feed.")
  }
}
