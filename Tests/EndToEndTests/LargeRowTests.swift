import Foundation
import Testing

extension EndToEnd {
  /// Rows of many megabytes, from the source to the replica's file.
  @Suite(.serialized) struct LargeRows {
    private static let schema = """
      CREATE TABLE documents (id int PRIMARY KEY, owner text NOT NULL, body text NOT NULL);
      CREATE TABLE notes (id int PRIMARY KEY, owner text NOT NULL);
      -- Text of 20 MB, with characters that a line must not hold as they are.
      CREATE FUNCTION body(seed int) RETURNS text LANGUAGE sql AS $$
        SELECT string_agg(md5(seed || '.' || i) || repeat(chr(97 + i % 26), 968) || CASE i % 10
          WHEN 0 THEN E'"\\\\\\n\\u2028\\u0085' WHEN 5 THEN E'\\U0001F6A7é' ELSE '' END, '')
        FROM generate_series(1, 20000) i $$;
      """
    private static let rules = """
      bucket_definitions:
        documents:
          parameters: SELECT request.user_id() AS owner
          data:
            - SELECT id, body FROM documents WHERE owner = bucket.owner
        notes:
          parameters: SELECT request.user_id() AS owner
          data:
            - SELECT id FROM notes WHERE owner = bucket.owner
      """

    /// The SHA-256 of every document, as PostgreSQL has it and as the replica's file has it.
    private func expectEqual(_ stage: Stage, _ copy: SQLiteCopy, count: Int) async throws {
      let source = try await stage.source.lines(
        """
        SELECT id || ' ' || encode(sha256(convert_to(body, 'UTF8')), 'hex') FROM documents
        WHERE owner = 'ann' ORDER BY id
        """)
      #expect(source.count == count)
      let folder = try Workspace.shared.folder("bodies")
      let ids = try await run(
        "sqlite3",
        [
          "-batch", "-readonly", copy.file.path,
          "SELECT id FROM documents WHERE writefile('\(folder.path)/' || id, body) ORDER BY 0 + id",
        ])
      var shown: [String] = []
      for id in ids.output.split(separator: "\n") {
        let sum = try await run("sha256sum", [folder.appending(path: String(id)).path])
        shown.append("\(id) \(sum.output.prefix(64))")
      }
      #expect(shown == source)
      try FileManager.default.removeItem(at: folder)
    }

    @Test("rows of 20 MB arrive byte for byte, in pages and live, in bounded memory")
    func twentyMegabytes() async throws {
      try await Stage.set(schema: Self.schema, rules: Self.rules) { stage in
        var peaks = [stage.gateway.peakBytes]
        let copy = try stage.sqliteCopy("ann")
        try await stage.change("INSERT INTO documents VALUES (1, 'ann', body(1))")
        let first = try await copy.sync()
        #expect(first.status == 0, "\(first.output)")
        try await expectEqual(stage, copy, count: 1)
        peaks.append(stage.gateway.peakBytes)

        try copy.start()
        try await stage.source.run("INSERT INTO notes VALUES (1, 'ann')")
        try await copy.shows("the note", ["notes": []]) { $0["notes"]?.count == 1 }
        // One by the live feed, then more at once than it takes.
        try await stage.source.run("UPDATE documents SET body = body(2) WHERE id = 1")
        try await stage.source.run("INSERT INTO notes VALUES (2, 'ann')")
        try await copy.shows("the second note", ["notes": []]) { $0["notes"]?.count == 2 }
        try await expectEqual(stage, copy, count: 1)
        peaks.append(stage.gateway.peakBytes)
        try await stage.source.run(
          """
          INSERT INTO documents SELECT n, 'ann', body(n) FROM generate_series(3, 7) n;
          INSERT INTO notes VALUES (3, 'ann');
          """)
        try await copy.shows("the third note", ["notes": []], within: 120) {
          $0["notes"]?.count == 3
        }
        try await expectEqual(stage, copy, count: 6)
        peaks.append(stage.gateway.peakBytes)
        await copy.stop()
        // The five at once would be 100 MB in PostgreSQL's answer, and 100 MB more in lines.
        #expect(peaks[3] - peaks[0] < 150 << 20, "\(peaks.map { $0 >> 20 }) MiB")
        #expect(try await stage.verify().status == 0)
      }
    }

    @Test("a row that is larger than a replica takes stops its definition, and says why")
    func tooLarge() async throws {
      try await Stage.set(schema: Self.schema, rules: Self.rules) { stage in
        let copy = try stage.sqliteCopy("ann")
        try copy.start()
        try await stage.source.run(
          """
          INSERT INTO documents VALUES (1, 'ann', 'short');
          UPDATE documents SET body = repeat('x', 40000000);
          INSERT INTO notes VALUES (1, 'ann');
          """)
        try await copy.shows("the note", ["notes": []]) { $0["notes"]?.count == 1 }
        let status = try await run(
          "sluice", ["status", "--config", stage.gateway.configuration.path])
        #expect(status.output.contains("SLUICE_ROW_TOO_LARGE"), "\(status.output)\(status.error)")
        #expect(stage.gateway.output.contains("SLUICE_ROW_TOO_LARGE"))
        #expect(copy.isRunning)
        try await stage.source.run("UPDATE documents SET body = 'short again'")
        try await copy.shows("the document", ["documents": ["body"]]) {
          $0["documents"]?["1"]?["body"] == .text("short again")
        }
        await copy.stop()
      }
    }
  }
}
