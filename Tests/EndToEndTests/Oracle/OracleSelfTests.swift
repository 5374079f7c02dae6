import Foundation
import TestSupport
import Testing

/// The judge is judged first: its arithmetic by published vectors, its log by the tables themselves.
@Suite struct OracleSelfTests {
  @Test("the tests' own SHA-256 and HMAC give the published digests")
  func digests() {
    // FIPS 180-4, example "abc"; RFC 4231, test case 2.
    #expect(
      hex(SHA256.hash(Array("abc".utf8)))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    let authenticated = SHA256.authenticate(
      Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
    #expect(
      hex(authenticated) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
  }

  @Test("the log, replayed to the last versions, is what the tables hold", arguments: [1, 2, 3])
  func replay(seed: UInt64) async throws {
    let database = try await PostgresCluster.shared.createDatabase()
    let source = Source(connectionString: database.connectionString)
    var random = SeededGenerator(seed: seed)
    let world = World(using: &random)
    try await source.run(
      world.schema + "INSERT INTO markers SELECT n, 0 FROM generate_series(1, 3) AS n;\n")
    var reader = HistoryReader(source: source)
    var replay = Replay()
    for _ in 0..<2 {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 1...World.writers {
          let seed = UInt64.random(in: 0...UInt64.max, using: &random)
          group.addTask {
            var writer = WorldWriter(
              number: number, world: world, random: SeededGenerator(seed: seed))
            for _ in 0..<15 { _ = try? await source.run(writer.transaction()) }
          }
        }
        try await group.waitForAll()
      }
      replay.add(try await reader.next())
      replay.advance(to: try await rows(of: "markers", ["version"], source))
    }
    var tables: Content = [:]
    tables["markers"] = try await rows(of: "markers", ["version"], source)
    tables["memberships"] = try await rows(
      of: "memberships", ["user_id", "grp", "active::int AS active"], source)
    for table in world.tables {
      tables[table.name] = try await rows(
        of: table.name,
        [
          "grp", "owner", "n", "label", "tags::text AS tags", "hidden::int AS hidden", "ratio",
          "price::text AS price",
          "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS at",
        ], source, key: table.key == .composite ? "a || ':' || b" : "id::text")
    }
    let shown = replay.state.filter { !$0.value.isEmpty }
    #expect(differences(shown: shown, expected: tables.filter { !$0.value.isEmpty }) == [])
    #expect(tables.values.contains { $0.count > 5 })
    try await database.drop()
  }

  private func rows(
    of table: String, _ columns: [String], _ source: Source, key: String = "id::text"
  ) async throws -> [String: Row] {
    var rows: [String: Row] = [:]
    let list = columns.joined(separator: ", ")
    for line in try await source.lines(
      "SELECT json_build_array(\(key), (SELECT row_to_json(c) FROM (SELECT \(list)) AS c)) FROM \(table)"
    ) {
      let pair = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [Any] ?? []
      let row = (pair[1] as? [String: Any] ?? [:]).mapValues { Value($0) }
      rows[pair[0] as? String ?? ""] = row
    }
    return rows
  }

  private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
