/// Which callers of a pool hold its connections, and who is next: first come, first served.
///
/// The pool has `size` permits. A caller that holds one has a connection, or opens one.
struct PoolStateMachine<Connection> {
  enum Arrival {
    case use(Connection)
    case open
    case wait
    case refuse
  }

  /// What becomes of a permit given back.
  enum Return {
    case hand(Connection?, to: Int)
    case keep
    case close(Connection)
  }

  private var permits: Int
  private var idle: [Connection] = []
  private var waiting: [Int] = []
  private(set) var isClosed = false

  init(size: Int) {
    permits = size
  }

  mutating func arrive(_ id: Int) -> Arrival {
    if isClosed { return .refuse }
    guard permits > 0 else {
      waiting.append(id)
      return .wait
    }
    permits -= 1
    // The one used last is the one most likely alive, and its caches are warm.
    return idle.popLast().map { .use($0) } ?? .open
  }

  /// A permit comes back, with its connection when that is still good.
  mutating func giveBack(_ connection: Connection?) -> Return {
    if isClosed {
      permits += 1
      return connection.map { .close($0) } ?? .keep
    }
    if !waiting.isEmpty { return .hand(connection, to: waiting.removeFirst()) }
    permits += 1
    if let connection { idle.append(connection) }
    return .keep
  }

  /// A waiting caller goes away; false when it was not waiting any more.
  mutating func leave(_ id: Int) -> Bool {
    guard let index = waiting.firstIndex(of: id) else { return false }
    waiting.remove(at: index)
    return true
  }

  /// Closes the pool, and returns the connections to close and the callers to refuse.
  mutating func close() -> (connections: [Connection], callers: [Int]) {
    isClosed = true
    defer { (idle, waiting) = ([], []) }
    return (idle, waiting)
  }
}
