import Foundation

/// One committed transaction of the source, from the log that the tables' own triggers keep.
struct LoggedTransaction: Sendable {
  struct Effect: Sendable {
    let sequence: Int
    let table: String
    let operation: String
    let key: String
    let row: Row
  }

  let writer: String
  let version: Int
  let effects: [Effect]
}

/// The source's rows as of any set of transactions: replays the log up to the versions that a checkpoint shows.
struct Replay {
  private(set) var state: Content = [:]
  private var pending: [LoggedTransaction] = []

  mutating func add(_ transactions: [LoggedTransaction]) { pending += transactions }

  /// Brings the state to the transactions that `markers` contain. Versions never go back for one replica.
  ///
  /// Two transactions that touch the same row wait for each other, so the log's order is the order of commits wherever it matters.
  mutating func advance(to markers: [String: Row]) {
    var contained: [LoggedTransaction.Effect] = []
    pending.removeAll { transaction in
      let shown = markers[transaction.writer]?["version"]?.integer ?? -1
      guard transaction.version <= shown else { return false }
      contained += transaction.effects
      return true
    }
    for effect in contained.sorted(by: { $0.sequence < $1.sequence }) {
      switch effect.operation {
      case "T": state[effect.table] = nil
      case "D": state[effect.table]?[effect.key] = nil
      default: state[effect.table, default: [:]][effect.key] = effect.row
      }
    }
  }
}

/// Reads the log in steps; each step takes what became visible since the one before.
struct HistoryReader {
  let source: Source
  private var snapshot: String?

  init(source: Source) { self.source = source }

  mutating func next() async throws -> [LoggedTransaction] {
    let window =
      snapshot.map {
        "AND xid >= pg_snapshot_xmin('\($0)') AND NOT pg_visible_in_snapshot(xid, '\($0)')"
      } ?? ""
    let lines = try await source.lines(
      """
      BEGIN ISOLATION LEVEL REPEATABLE READ;
      SELECT pg_current_snapshot();
      SELECT json_build_array(xid::text, seq, tbl, op, key, row) FROM history WHERE true \(window) ORDER BY seq;
      COMMIT;
      """)
    snapshot = lines.first
    var byTransaction: [String: [LoggedTransaction.Effect]] = [:]
    for line in lines.dropFirst() {
      guard
        let fields = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [Any],
        let xid = fields[0] as? String, let sequence = fields[1] as? Int,
        let table = fields[2] as? String, let operation = fields[3] as? String
      else { continue }
      let row = (fields[5] as? [String: Any] ?? [:]).mapValues { Value($0) }
      byTransaction[xid, default: []].append(
        LoggedTransaction.Effect(
          sequence: sequence, table: table, operation: operation, key: fields[4] as? String ?? "",
          row: row))
    }
    return byTransaction.values.compactMap { effects in
      let marker = effects.last { $0.table == "markers" && $0.operation == "I" }
      guard let marker, let version = marker.row["version"]?.integer else { return nil }
      return LoggedTransaction(writer: marker.key, version: version, effects: effects)
    }
  }
}

/// Where two contents differ, in words.
func differences(shown: Content, expected: Content) -> [String] {
  var found: [String] = []
  for table in Set(shown.keys).union(expected.keys).sorted() {
    let (left, right) = (shown[table] ?? [:], expected[table] ?? [:])
    for id in Set(left.keys).union(right.keys).sorted() where left[id] != right[id] {
      let (a, b) = (left[id].map(text) ?? "nothing", right[id].map(text) ?? "nothing")
      found.append("\(table)/\(id): shown \(a), expected \(b)")
    }
  }
  return found
}

private func text(_ row: Row) -> String {
  "{" + row.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", ")
    + "}"
}
