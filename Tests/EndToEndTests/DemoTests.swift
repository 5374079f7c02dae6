import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `sluice demo`, as a newcomer meets it.
  @Suite(.serialized) struct Demonstration {
    private static let objects = """
      SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'sluice' OR n.nspname = 'public'
      """

    @Test("it tells its story, shows what changes, and leaves the database as empty as it was")
    func story() async throws {
      let database = try await PostgresCluster.shared.createDatabase()
      let source = Source(connectionString: database.connectionString)
      let file = try Workspace.shared.folder("demo").appending(path: "output")
      let demo = try ChildProcess(
        "sluice", ["demo", "--database", database.connectionString, "--listen", "127.0.0.1:0"],
        outputFile: file)
      try await eventually("the demo serves", within: 300) {
        guard demo.isRunning else {
          throw Expired(what: "the demo ended: \(demo.output)", seconds: 0)
        }
        return demo.output.contains("Serving on http://127.0.0.1:")
      }
      for line in [
        "work_orders    12000 rows", "before: Anna holds it: 1, Bruno holds it: 0",
        "after:  Anna holds it: 0, Bruno holds it: 1", "after:  0 customers",
      ] {
        #expect(demo.output.contains(line), "\(demo.output)")
      }
      for name in ["anna ", "bruno"] {
        let line = demo.output.split(separator: "\n").first {
          $0.hasPrefix("  \(name) ") && $0.hasSuffix("of 11 tables, the same as in PostgreSQL")
        }
        #expect(line != nil, "\(demo.output)")
      }
      // Its configuration serves the other commands.
      let words = demo.output.split(whereSeparator: \.isWhitespace).map(String.init)
      let configuration = try #require(words.first { $0.hasSuffix("/sluice.yaml") })
      let verified = try await run("sluice", ["verify", "--config", configuration])
      #expect(verified.status == 0, "\(verified.output)\(verified.error)")

      try await source.run("UPDATE public.parts SET stock = stock + 1 WHERE id = 'P-0001'")
      try await eventually("both replicas show the change") {
        demo.output.split(separator: "\n").count { $0.hasSuffix("rows changed in parts: 1") } == 2
      }
      #expect(await demo.stop(within: 30) == 0, "\(demo.output)")
      #expect(try await source.run(Self.objects) == "0")
      let folder = URL(filePath: configuration).deletingLastPathComponent()
      #expect(!FileManager.default.fileExists(atPath: folder.path))
      try await database.drop()
    }

    @Test("a database that holds anything is refused and left alone")
    func notEmpty() async throws {
      let database = try await PostgresCluster.shared.createDatabase()
      let source = Source(connectionString: database.connectionString)
      try await source.run("CREATE VIEW public.precious AS SELECT 1 AS one")
      let result = try await run(
        "sluice", ["demo", "--database", database.connectionString, "--once"])
      #expect(result.status == 2)
      #expect(result.error.contains("is not empty: it holds public.precious"), "\(result.error)")
      #expect(try await source.run(Self.objects) == "1")
      let missing = try await run("sluice", ["demo"])
      #expect(missing.status == 2)
      let help = try await run("sluice", ["demo", "--help"])
      #expect(help.status == 0)
      #expect(help.output.contains("--once"))
      try await database.drop()
    }
  }
}
