import ServiceRuntime
import Testing

@Suite struct MetricsTests {
  @Test func `the text is Prometheus's, sorted, with labels escaped and buckets cumulative`() {
    let metrics = Metrics()
    metrics.counter("b_total", "Bees.", ["kind": "a\"\\\n"]).add(2)
    metrics.counter("b_total", "Bees.", ["kind": "a\"\\\n"]).add()
    metrics.gauge("a", "Ays.").set(-5)
    let histogram = metrics.histogram("c_seconds", "Seas.", ["x": "y"], buckets: [0.5, 1])
    histogram.record(0.25)
    histogram.record(0.5)
    histogram.record(.milliseconds(750))
    histogram.record(2.0)
    #expect(
      metrics.text() == #"""
        # HELP a Ays.
        # TYPE a gauge
        a -5
        # HELP b_total Bees.
        # TYPE b_total counter
        b_total{kind="a\"\\\n"} 3
        # HELP c_seconds Seas.
        # TYPE c_seconds histogram
        c_seconds_bucket{x="y",le="0.5"} 2
        c_seconds_bucket{x="y",le="1.0"} 3
        c_seconds_bucket{x="y",le="+Inf"} 4
        c_seconds_sum{x="y"} 3.5
        c_seconds_count{x="y"} 4

        """#)
  }
}
