internal import Synchronization

/// The process's numbers, as Prometheus text.
///
/// Asking twice for the same name and labels gives the same object; keep it, since asking takes a lock.
package final class Metrics: Sendable {
  private enum Value {
    case counter(Counter)
    case gauge(Gauge)
    case histogram(Histogram)
  }

  private struct Family {
    let help: String
    let kind: String
    var values: [String: Value] = [:]
  }

  private let families = Mutex<[String: Family]>([:])

  package init() {}

  /// A number that only rises. By convention its name ends in `_total`.
  package func counter(_ name: String, _ help: String, _ labels: [String: String] = [:]) -> Counter
  {
    let value = value(name, help, "counter", labels) { .counter(Counter()) }
    guard case .counter(let counter) = value else { preconditionFailure("\(name) is no counter") }
    return counter
  }

  /// A number that rises and falls.
  package func gauge(_ name: String, _ help: String, _ labels: [String: String] = [:]) -> Gauge {
    let value = value(name, help, "gauge", labels) { .gauge(Gauge()) }
    guard case .gauge(let gauge) = value else { preconditionFailure("\(name) is no gauge") }
    return gauge
  }

  /// How measurements are distributed over ascending upper bounds.
  package func histogram(
    _ name: String, _ help: String, _ labels: [String: String] = [:],
    buckets: [Double] = Histogram.seconds
  ) -> Histogram {
    let value = value(name, help, "histogram", labels) { .histogram(Histogram(buckets)) }
    guard case .histogram(let histogram) = value else {
      preconditionFailure("\(name) is no histogram")
    }
    return histogram
  }

  /// Everything, in the text format 0.0.4, sorted by name.
  package func text() -> String {
    families.withLock { families in
      var text = ""
      for (name, family) in families.sorted(by: { $0.key < $1.key }) {
        text += "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.kind)\n"
        for (labels, value) in family.values.sorted(by: { $0.key < $1.key }) {
          switch value {
          case .counter(let counter): text += Self.line(name, labels, String(counter.value))
          case .gauge(let gauge): text += Self.line(name, labels, String(gauge.value))
          case .histogram(let histogram): text += Self.lines(name, labels, histogram)
          }
        }
      }
      return text
    }
  }

  private func value(
    _ name: String, _ help: String, _ kind: String, _ labels: [String: String],
    _ make: () -> Value
  ) -> Value {
    let key = labels.sorted { $0.key < $1.key }
      .map { "\($0.key)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
    return families.withLock { families in
      if let value = families[name]?.values[key] { return value }
      let value = make()
      families[name, default: Family(help: help, kind: kind)].values[key] = value
      return value
    }
  }

  private static func escaped(_ text: String) -> String {
    text.reduce(into: "") { result, character in
      switch character {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.append(character)
      }
    }
  }

  private static func line(_ name: String, _ labels: String, _ value: String) -> String {
    labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
  }

  private static func lines(_ name: String, _ labels: String, _ histogram: Histogram) -> String {
    let (counts, sum) = histogram.snapshot
    let prefix = labels.isEmpty ? "" : labels + ","
    var total = 0
    var text = ""
    for (index, count) in counts.enumerated() {
      total += count
      let bound = index < histogram.bounds.count ? String(histogram.bounds[index]) : "+Inf"
      text += line("\(name)_bucket", "\(prefix)le=\"\(bound)\"", String(total))
    }
    return text + line("\(name)_sum", labels, String(sum))
      + line("\(name)_count", labels, String(total))
  }
}

/// A number that only rises.
package final class Counter: Sendable {
  private let count = Atomic<Int>(0)
  package var value: Int { count.load(ordering: .relaxed) }
  package func add(_ amount: Int = 1) { count.wrappingAdd(amount, ordering: .relaxed) }
}

/// A number that rises and falls.
package final class Gauge: Sendable {
  private let level = Atomic<Int>(0)
  package var value: Int { level.load(ordering: .relaxed) }
  package func set(_ value: Int) { level.store(value, ordering: .relaxed) }
  package func add(_ amount: Int = 1) { level.wrappingAdd(amount, ordering: .relaxed) }
}

/// How many measurements were at most each bound.
package final class Histogram: Sendable {
  /// Bounds for durations, from half a millisecond to ten seconds.
  package static let seconds = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
  ]

  let bounds: [Double]
  private let state: Mutex<(counts: [Int], sum: Double)>

  init(_ bounds: [Double]) {
    self.bounds = bounds
    state = Mutex((Array(repeating: 0, count: bounds.count + 1), 0))
  }

  package func record(_ value: Double) {
    let index = bounds.firstIndex { value <= $0 } ?? bounds.count
    state.withLock {
      $0.counts[index] += 1
      $0.sum += value
    }
  }

  package func record(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    record(Double(seconds) + Double(attoseconds) * 1e-18)
  }

  var snapshot: (counts: [Int], sum: Double) { state.withLock { $0 } }
}
