/// The statements prepared on a connection, by their text; the least recently used go first.
struct StatementCache {
  /// Statements kept on the server for one connection.
  static let limit = 256

  private struct Entry {
    let name: String
    var lastUse: Int
  }

  private var entries: [String: Entry] = [:]
  private var clock = 0
  private var names = 0

  /// The name of a prepared statement, which counts as a use.
  mutating func name(of sql: String) -> String? {
    guard let index = entries.index(forKey: sql) else { return nil }
    clock += 1
    entries.values[index].lastUse = clock
    return entries.values[index].name
  }

  mutating func newName() -> String {
    names += 1
    return "sluice_\(names)"
  }

  mutating func insert(_ sql: String, name: String) {
    clock += 1
    entries[sql] = Entry(name: name, lastUse: clock)
  }

  mutating func forget(_ sql: String) {
    entries[sql] = nil
  }

  /// Removes as many statements as the new ones among `texts` need, and returns their names.
  mutating func evict(toMakeRoomFor texts: [String]) -> [String] {
    guard entries.count + texts.count > Self.limit else { return [] }
    let wanted = Set(texts)
    let new = wanted.count { entries[$0] == nil }
    let excess = entries.count + new - Self.limit
    guard excess > 0 else { return [] }
    let oldest = entries.filter { !wanted.contains($0.key) }
      .sorted { $0.value.lastUse < $1.value.lastUse }.prefix(excess)
    for (sql, _) in oldest { entries[sql] = nil }
    return oldest.map(\.value.name)
  }
}
