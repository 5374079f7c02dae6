import BucketStorage

/// A row's report as text.
struct RowExplanation {
  private let report: RowReport
  private let user: String?
  private let asksForOne: Bool

  /// `user` is who was asked for, when the request has a name.
  init(_ report: RowReport, user: String?) {
    self.report = report
    self.user = user
    asksForOne = report.ways.contains { $0.buckets.contains { $0.access != nil } } || user != nil
  }

  var text: String {
    var lines = [head]
    if report.isPending {
      lines.append("it was changed since tick \(report.tick), and the next tick will see that")
    }
    for way in report.ways where !way.buckets.isEmpty || !way.failures.isEmpty {
      lines += ["", "\(title(way)), query \(way.query), to \(way.output)"]
      lines += way.buckets.flatMap { self.lines($0) }
      for (index, failures) in way.failures.enumerated() {
        let way = way.failures.count > 1 ? "alternative \(index + 1): " : ""
        lines += failures.map { "  \(way)not this row: \($0.text)" }
      }
    }
    return lines.joined(separator: "\n")
  }

  private var head: String {
    let row = "\(report.table)/\(report.key)"
    guard report.exists else { return "\(row): there is no such row" }
    let who = user ?? "this request"
    guard asksForOne else {
      let isAnywhere = report.ways.contains { $0.buckets.contains(where: \.isGiven) }
      return isAnywhere ? row : "\(row): in no bucket, nobody may hold it"
    }
    return "\(row): \(who) \(report.isHeld ? "may hold it" : "may not hold it")"
  }

  private func title(_ way: RowReport.Way) -> String {
    way.stream.map { "stream \($0) (\(way.definition))" } ?? way.definition
  }

  private func lines(_ bucket: RowReport.Bucket) -> [String] {
    var lines = ["  in bucket \(bucket.name)\(state(bucket))"]
    if let access = bucket.access {
      lines.append(access.isGranted ? "    granted" : "    not granted")
      lines += access.reasons.map { "      \($0)" }
    }
    for holder in bucket.holders ?? [] { lines += self.lines(holder) }
    if bucket.holders?.isEmpty == true { lines.append("    nobody has it") }
    return lines
  }

  private func state(_ bucket: RowReport.Bucket) -> String {
    switch (bucket.isGiven, bucket.isStored) {
    case (true, true): ""
    case (true, false): ", from the next tick on"
    case (false, _): ", until the next tick"
    }
  }

  private func lines(_ holders: RowReport.Holders) -> [String] {
    let conditions = holders.conditions
    var lines = holders.requests.map { values in
      let needs = values.map { "\($0.name) = \($0.json)" } + conditions
      return "    "
        + (needs.isEmpty ? "everybody" : "whoever has \(needs.joined(separator: " and "))")
    }
    if holders.hasMore { lines.append("    and more") }
    return lines
  }
}

extension RowReport.Failure {
  /// The condition with the values that it read.
  fileprivate var text: String {
    guard !values.isEmpty else { return condition }
    let shown = values.map { value in
      let text = value.json == "null" ? "NULL" : value.json
      return "\(value.name) is \(text.count > 60 ? text.prefix(57) + "…" : text)"
    }
    return "\(condition), and \(shown.joined(separator: ", "))"
  }
}
