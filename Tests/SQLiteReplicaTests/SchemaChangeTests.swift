import SyncProtocol
import Testing

@testable import SQLiteReplica

/// Writes as the application does, on a connection of its own.
func writeRaw(_ path: String, _ sql: String) throws {
  try SQLiteConnection(path: path).execute(sql)
}

@Suite("A replica's schema")
struct SchemaChangeTests {
  /// A replica with `todos(title TEXT, n INTEGER)` and one row.
  private func fixture() async throws -> ReplicaFixture {
    let fixture = try await ReplicaFixture()
    _ = try await fixture.replica.begin()
    try await fixture.send(schema: ReplicaFixture.todos)
    try await fixture.send(checkpoint: 2, [fixture.bucket("b", 1, digest: 17)])
    try await fixture.send(rows: "b", [("t1", 17, #"{"title":"one","n":1}"#)])
    try await fixture.complete(2)
    return fixture
  }

  private func table(_ columns: PublishedColumn..., name: String = "todos") -> PublishedTable {
    PublishedTable(name: name, columns: columns)
  }

  @Test("columns come and go, and the rows stay")
  func columns() async throws {
    let fixture = try await fixture()
    try writeRaw(fixture.path, "CREATE INDEX by_title ON todos (title)")
    try writeRaw(fixture.path, "CREATE VIEW titles AS SELECT title FROM todos")
    let title = PublishedColumn(name: "title", type: .text)
    let n = PublishedColumn(name: "n", type: .integer)
    let due = PublishedColumn(name: "due", type: .text)
    try await fixture.send(schema: table(title, n, due))
    try await fixture.send(checkpoint: 3, full: false, [fixture.bucket("b", 2, digest: 17 ^ 33)])
    try await fixture.send(rows: "b", [("t2", 33, #"{"title":"two","n":2,"due":"today"}"#)])
    #expect(try await fixture.rows("SELECT name FROM pragma_table_info('todos')").count == 3)
    try await fixture.complete(3)
    #expect(
      try await fixture.rows("SELECT * FROM todos ORDER BY id")
        == ["t1|one|1|NULL", "t2|two|2|today"])
    // A column goes, another changes its type and their order changes.
    try await fixture.send(schema: table(due, PublishedColumn(name: "n", type: .text), title))
    try await fixture.send(checkpoint: 4, full: false, [])
    try await fixture.complete(4)
    #expect(
      try await fixture.rows("SELECT * FROM todos ORDER BY id")
        == ["t1|NULL|1|one", "t2|today|2|two"])
    #expect(
      try await fixture.rows("SELECT DISTINCT typeof(n) FROM todos") == ["text"])
    #expect(
      try await fixture.rows("SELECT name FROM sqlite_master WHERE name = 'by_title'")
        == ["by_title"])
    #expect(try await fixture.rows("SELECT * FROM titles ORDER BY 1") == ["one", "two"])
    try await fixture.send(schema: table(due))
    try await fixture.send(checkpoint: 5, full: false, [])
    try await fixture.complete(5)
    #expect(try await fixture.rows("SELECT * FROM todos ORDER BY id") == ["t1|NULL", "t2|today"])
  }

  @Test("a table that leaves the schema is dropped once no bucket holds rows of it")
  func tables() async throws {
    let fixture = try await fixture()
    let notes = table(PublishedColumn(name: "body", type: .any), name: "no\"tes")
    try await fixture.send(schema: notes)
    try await fixture.send(
      checkpoint: 3, full: false, [fixture.bucket("c", 1, digest: 33)])
    try await fixture.send(rows: "c", [("x", 33, #"{"body":1.5}"#)], table: "no\"tes")
    try await fixture.complete(3)
    #expect(try await fixture.rows("SELECT * FROM \"no\"\"tes\"") == ["x|1.5r"])
    #expect(try await fixture.rows() == ["t1|one|1"])
    try await fixture.send(checkpoint: 4, full: false, [], removed: ["b"])
    try await fixture.complete(4)
    await #expect(throws: ReplicaError.self) { try await fixture.rows() }
  }

  @Test("a schema is not in force before its checkpoint is complete")
  func notBefore() async throws {
    let fixture = try await fixture()
    let hash = try await fixture.replica.begin().schema
    try await fixture.send(schema: table(PublishedColumn(name: "other", type: .text)))
    try await fixture.send(checkpoint: 3, [fixture.bucket("b", 1, digest: 17)])
    try await fixture.replica.end()
    #expect(try await fixture.replica.begin().schema == hash)
    #expect(try await fixture.rows() == ["t1|one|1"])
  }

  @Test("rows of a table that is not in the schema are kept until it is")
  func lateTable() async throws {
    let fixture = try await fixture()
    try await fixture.send(checkpoint: 3, full: false, [fixture.bucket("c", 2, digest: 33 ^ 34)])
    try await fixture.send(
      rows: "c", [("x", 33, #"{"body":"a"}"#), ("y", 34, #"{"body":"b"}"#)], table: "notes")
    try await fixture.complete(3)
    try await fixture.send(
      schema: ReplicaFixture.todos, table(PublishedColumn(name: "body", type: .text), name: "notes")
    )
    try await fixture.send(checkpoint: 4, full: false, [fixture.bucket("c", 1, digest: 34)])
    try await fixture.send(rows: "c", [("x", 49, nil)], table: "notes")
    try await fixture.complete(4)
    #expect(try await fixture.rows("SELECT * FROM notes") == ["y|b"])
  }

  @Test(
    "names that a replica needs for itself are refused",
    arguments: ["sluice_meta", "SLUICE_x", "sqlite_x", ""])
  func reserved(name: String) async throws {
    let fixture = try await fixture()
    try await fixture.send(schema: table(name: name))
    try await fixture.send(checkpoint: 3, full: false, [])
    await #expect { try await fixture.complete(3) } throws: {
      ($0 as? ReplicaError)?.code == "SLUICE_REPLICA_SCHEMA"
    }
    #expect(try await fixture.rows() == ["t1|one|1"])
  }
}
