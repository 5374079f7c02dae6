import SQLiteReplica
import SyncProtocol
import Testing

@Suite("A replica")
struct ReplicaTests {
  @Test("shows nothing of a download until it is complete, and then all of it")
  func completeOnly() async throws {
    let fixture = try await ReplicaFixture()
    let start = try await fixture.replica.begin()
    #expect(start.schema == nil && start.positions.isEmpty)
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(checkpoint: 2, [fixture.bucket("b", 2, digest: 17 ^ 18)])
    try await fixture.send(rows: "b", [("t1", 17, #"{"title":"one","n":1}"#)])
    try await fixture.send(rows: "b", [("t2", 18, #"{"title":"two","n":2}"#)])
    await #expect(throws: ReplicaError.self) { try await fixture.rows() }
    guard case .applied(let applied) = try await fixture.complete(2) else {
      Issue.record("The checkpoint was not applied.")
      return
    }
    #expect(applied.rowsChanged == 2 && applied.tables == ["todos"] && applied.tick == 2)
    #expect(try await fixture.rows() == ["t1|one|1", "t2|two|2"])
    #expect(try await fixture.replica.lastCheckpoint()?.tick == 2)
    #expect(
      try await fixture.replica.begin().positions
        == ["b": SyncPosition(stamp: fixture.stamp, id: 32, start: 16)])
  }

  @Test("stores each JSON value by its column's type, and passes over unknown columns")
  func values() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(
      schema: PublishedTable(
        name: "v",
        columns: [
          PublishedColumn(name: "t", type: .text), PublishedColumn(name: "i", type: .integer),
          PublishedColumn(name: "r", type: .real), PublishedColumn(name: "x", type: .any),
        ]))
    let rows: [(String, Int64, String?)] = [
      ("a", 17, #"{"t":"é\u0041\ud83d\ude00","i":true,"r":3,"x":false,"later":{"a":[1]}}"#),
      ("b", 18, #"{"x":"5","r":0.1,"i":9223372036854775807,"t":12345678901234567890.10}"#),
      ("c", 19, #"{"t":null,"i":"7","r":"x","x":[1,"a"]}"#),
      ("d", 20, #"{}"#),
      ("e\u{22}'", 21, #"{"t":"","i":-1,"r":1e300,"x":2.5}"#),
    ]
    try await fixture.send(checkpoint: 2, [fixture.bucket("b", 5, digest: 17 ^ 18 ^ 19 ^ 20 ^ 21)])
    try await fixture.send(rows: "b", rows, table: "v")
    try await fixture.complete(2)
    #expect(
      try await fixture.rows("SELECT id, t, i, r, x FROM v ORDER BY id") == [
        "a|éA😀|1|3.0r|0", "b|12345678901234567890.10|9223372036854775807|0.1r|5",
        #"c|NULL|7|x|[1,"a"]"#, "d|NULL|NULL|NULL|NULL", "e\"'||-1|1e+300r|2.5r",
      ])
    #expect(
      try await fixture.rows("SELECT typeof(t), typeof(x) FROM v WHERE id = 'b'") == ["text|text"])
  }

  @Test("a row held by two buckets shows the newer entry and falls back on the other")
  func overlap() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(
      checkpoint: 2, [fixture.bucket("a", 1, digest: 17), fixture.bucket("b", 1, digest: 18)])
    try await fixture.send(rows: "b", [("t", 18, #"{"title":"of b","n":2}"#)])
    try await fixture.send(rows: "a", [("t", 17, #"{"title":"of a","n":1}"#)])
    try await fixture.complete(2)
    #expect(try await fixture.rows() == ["t|of b|2"])
    // The row leaves b: a still has it.
    try await fixture.send(checkpoint: 3, full: false, [fixture.bucket("b", 0, digest: 0)])
    try await fixture.send(rows: "b", [("t", 33, nil)])
    try await fixture.complete(3)
    #expect(try await fixture.rows() == ["t|of a|1"])
    // It comes back in b, and a is no longer granted.
    try await fixture.send(checkpoint: 4, full: false, [fixture.bucket("b", 1, digest: 49)])
    try await fixture.send(rows: "b", [("t", 49, #"{"title":"of b again","n":0.25}"#)])
    try await fixture.complete(4)
    try await fixture.send(checkpoint: 5, full: false, [], removed: ["a"])
    try await fixture.complete(5)
    #expect(try await fixture.rows() == ["t|of b again|0.25r"])
    try await fixture.send(checkpoint: 6, full: false, [], removed: ["b"])
    try await fixture.complete(6)
    #expect(try await fixture.rows() == [])
  }

  @Test("revoked-offline: buckets that the first checkpoint does not list go, in that checkpoint")
  func revokedOffline() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(
      checkpoint: 2, [fixture.bucket("team", 1, digest: 17), fixture.bucket("own", 1, digest: 18)])
    try await fixture.send(rows: "team", [("t1", 17, #"{"title":"team's"}"#)])
    try await fixture.send(rows: "own", [("t2", 18, #"{"title":"own"}"#)])
    try await fixture.complete(2)
    try await fixture.replica.end()
    _ = try await fixture.replica.begin()
    try await fixture.send(checkpoint: 3, [fixture.bucket("own", 1, digest: 18)])
    #expect(try await fixture.rows().count == 2)
    try await fixture.complete(3)
    #expect(try await fixture.rows() == ["t2|own|NULL"])
  }

  @Test("other-database: a reset replaces the bucket in one step and leaves no old row")
  func reset() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(checkpoint: 200, [fixture.bucket("b", 2, digest: 1017 ^ 1018)])
    try await fixture.send(
      rows: "b", [("t1", 1017, #"{"title":"old"}"#), ("t2", 1018, #"{"title":"old"}"#)])
    try await fixture.complete(200)
    try await fixture.replica.end()
    _ = try await fixture.replica.begin()
    try await fixture.send(
      checkpoint: 3, [fixture.bucket("b", 1, digest: 17, start: 32, reset: true)])
    try await fixture.send(rows: "b", [("t2", 17, #"{"title":"new"}"#)])
    #expect(try await fixture.rows() == ["t1|old|NULL", "t2|old|NULL"])
    try await fixture.complete(3)
    #expect(try await fixture.rows() == ["t2|new|NULL"])
    #expect(
      try await fixture.replica.begin().positions
        == ["b": SyncPosition(stamp: fixture.stamp, id: 48, start: 32)])
  }

  @Test("kill-first-sync: what was downloaded is kept and the download goes on from there")
  func resume() async throws {
    let folder = try TemporaryFolder()
    do {
      let fixture = try await ReplicaFixture(folder: folder)
      _ = try await fixture.replica.begin()
      try await fixture.send(schema: ReplicaFixture.todos)
      try await fixture.send(checkpoint: 2, [fixture.bucket("b", 2, digest: 17 ^ 18)])
      try await fixture.send(rows: "b", [("t1", 17, #"{"title":"one"}"#)])
      try await fixture.replica.end()
    }
    let fixture = try await ReplicaFixture(folder: folder)
    let start = try await fixture.replica.begin()
    #expect(start.schema == nil)
    #expect(start.positions == ["b": SyncPosition(stamp: fixture.stamp, id: 17, start: 16)])
    try await fixture.send(schema: ReplicaFixture.todos)
    let event = try await fixture.send(checkpoint: 3, [fixture.bucket("b", 2, digest: 17 ^ 18)])
    guard case .announced(let line, let progress) = event else {
      Issue.record("no announcement: \(event)")
      return
    }
    #expect(line.tick == 3)
    #expect(progress == DownloadProgress(downloaded: 1, expected: 2))
    try await fixture.send(rows: "b", [("t2", 18, #"{"title":"two"}"#)])
    try await fixture.complete(3)
    #expect(try await fixture.rows() == ["t1|one|NULL", "t2|two|NULL"])
    #expect(try await fixture.replica.stagedOperations() == 0)
  }

  @Test(
    "rules that change in the midst of a first download keep its rows, and show nothing of it before its end"
  )
  func rulesChangeDuringFirstDownload() async throws {
    var configuration = Replica.Configuration()
    configuration.stageMemory = 0
    let fixture = try await ReplicaFixture(configuration: configuration)
    let narrow = PublishedTable(
      name: "todos", columns: [PublishedColumn(name: "title", type: .text)])
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: narrow)
    try await fixture.send(checkpoint: 2, [fixture.bucket("b", 3, digest: 1 ^ 2 ^ 3)])
    try await fixture.send(rows: "b", [("t1", 1, #"{"title":"a"}"#)])
    try await fixture.replica.end()

    let start = try await fixture.replica.begin()
    #expect(start.schema == nil)
    #expect(start.positions["b"]?.id == 1)
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(checkpoint: 2, [fixture.bucket("b", 3, digest: 1 ^ 2 ^ 3)])
    try await fixture.send(rows: "b", [("t2", 2, #"{"title":"b","n":5}"#)])
    try await fixture.send(rows: "b", [("t10", 3, #"{"title":"c","n":6}"#)])
    await #expect(throws: ReplicaError.self) { try await fixture.rows() }
    try await fixture.complete(2)
    #expect(try await fixture.rows() == ["t1|a|NULL", "t10|c|6", "t2|b|5"])
  }

  @Test("a bucket that has drifted is not shown, and is fetched again alone")
  func drifted() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(
      checkpoint: 2, [fixture.bucket("a", 1, digest: 17), fixture.bucket("b", 1, digest: 18)])
    try await fixture.send(rows: "a", [("t1", 17, #"{"title":"a"}"#)])
    try await fixture.send(rows: "b", [("t2", 18, #"{"title":"b"}"#)])
    try await fixture.complete(2)
    // An entry of b is lost on the way.
    try await fixture.send(
      checkpoint: 3, full: false,
      [fixture.bucket("a", 2, digest: 17 ^ 33), fixture.bucket("b", 2, digest: 18 ^ 35)])
    try await fixture.send(rows: "a", [("t3", 33, #"{"title":"a"}"#)])
    try await fixture.send(rows: "b", [("t4", 34, #"{"title":"wrong"}"#)])
    await #expect { try await fixture.complete(3) } throws: {
      ($0 as? ReplicaError)?.code == "SLUICE_REPLICA_DRIFTED"
    }
    #expect(try await fixture.rows() == ["t1|a|NULL", "t2|b|NULL"])
    try await fixture.replica.end()
    let positions = try await fixture.replica.begin().positions
    #expect(positions.keys.map(\.text) == ["a"] && positions["a"]?.id == 33)
    try await fixture.send(
      checkpoint: 4,
      [
        fixture.bucket("a", 2, digest: 17 ^ 33),
        fixture.bucket("b", 2, digest: 18 ^ 35, start: 64),
      ])
    try await fixture.send(
      rows: "b", [("t2", 18, #"{"title":"b"}"#), ("t4", 35, #"{"title":"right"}"#)])
    try await fixture.complete(4)
    #expect(
      try await fixture.rows() == ["t1|a|NULL", "t2|b|NULL", "t3|a|NULL", "t4|right|NULL"])
  }

  @Test("a partial checkpoint becomes visible early")
  func partial() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(
      checkpoint: 2,
      [fixture.bucket("a", 1, digest: 17, priority: 1), fixture.bucket("b", 1, digest: 18)])
    try await fixture.send(rows: "a", [("t1", 17, #"{"title":"soon"}"#)])
    guard case .applied(let applied) = try await fixture.complete(2, priority: 1) else {
      Issue.record("The partial checkpoint was not applied.")
      return
    }
    #expect(applied.priority == 1)
    #expect(try await fixture.rows() == ["t1|soon|NULL"])
    #expect(try await fixture.replica.lastCheckpoint() == nil)
    // Cut off here, the rest is fetched from where the download stands.
    try await fixture.replica.end()
    #expect(
      try await fixture.replica.begin().positions
        == ["a": SyncPosition(stamp: fixture.stamp, id: 32, start: 16)])
    try await fixture.send(
      checkpoint: 2,
      [fixture.bucket("a", 1, digest: 17, priority: 1), fixture.bucket("b", 1, digest: 18)])
    try await fixture.send(rows: "b", [("t2", 18, #"{"title":"later"}"#)])
    try await fixture.complete(2)
    #expect(try await fixture.rows() == ["t1|soon|NULL", "t2|later|NULL"])
  }

  @Test("a partial checkpoint that would show an older version of a row waits for the whole one")
  func partialWaits() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(
      checkpoint: 2,
      [fixture.bucket("a", 1, digest: 18, priority: 1), fixture.bucket("b", 1, digest: 17)])
    try await fixture.send(rows: "b", [("t", 17, #"{"title":"older"}"#)])
    try await fixture.send(rows: "a", [("t", 18, #"{"title":"newer"}"#)])
    try await fixture.complete(2)
    try await fixture.send(
      checkpoint: 3, full: false,
      [fixture.bucket("a", 0, digest: 0, priority: 1), fixture.bucket("b", 1, digest: 34)])
    try await fixture.send(rows: "a", [("t", 33, nil)])
    #expect(try await fixture.complete(3, priority: 1) == .ignored)
    #expect(try await fixture.rows() == ["t|newer|NULL"])
    try await fixture.send(rows: "b", [("t", 34, #"{"title":"newest"}"#)])
    try await fixture.complete(3)
    #expect(try await fixture.rows() == ["t|newest|NULL"])
  }

  @Test("lines out of order are refused")
  func order() async throws {
    let fixture = try await ReplicaFixture()
    await #expect(throws: ReplicaError.self) { try await fixture.complete(1) }
    _ = try await fixture.replica.begin()
    await #expect(throws: ReplicaError.self) { try await fixture.send(rows: "b", [("t", 17, nil)]) }
    try await fixture.send(checkpoint: 2, [fixture.bucket("b", 0, digest: 0)])
    await #expect(throws: ReplicaError.self) { try await fixture.send(rows: "x", [("t", 17, nil)]) }
    await #expect(throws: ReplicaError.self) { try await fixture.complete(3) }
  }

  @Test("an operation that comes twice counts once")
  func twice() async throws {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(checkpoint: 2, [fixture.bucket("b", 1, digest: 18)])
    for _ in 0..<2 {
      try await fixture.send(
        rows: "b", [("t", 17, #"{"title":"one"}"#), ("t", 18, #"{"title":"two"}"#)])
    }
    try await fixture.complete(2)
    #expect(try await fixture.rows() == ["t|two|NULL"])
  }

  @Test("a database of another format is refused")
  func format() async throws {
    let folder = try TemporaryFolder()
    let fixture = try await ReplicaFixture(folder: folder)
    try writeRaw(fixture.path, "UPDATE sluice_meta SET value = '99' WHERE name = 'format'")
    await #expect { _ = try await ReplicaFixture(folder: folder) } throws: {
      ($0 as? ReplicaError)?.code == "SLUICE_REPLICA_FORMAT"
    }
  }
}
