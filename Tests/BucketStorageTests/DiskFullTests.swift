import BucketStorage
import Postgres
import ServiceRuntime
import TestSupport
import Testing

/// A disk that is really full, under the schema `sluice` alone; the application's tables have another.
///
/// `TroubleTests` raise the same error where no small disk can be made.
@Suite(
  .serialized,
  .enabled(
    if: PostgresCluster.hasSmallDisks,
    "a small disk takes root with the right to mount, or user namespaces"))
struct DiskFullTests {
  private static let cluster = PostgresCluster(smallDisk: 24)

  private func withSmallDisk(_ body: (Stage, SmallDisk) async throws -> Void) async throws {
    try await withDatabase(in: Self.cluster) { database in
      let disk = SmallDisk(directory: Self.cluster.smallDiskDirectory)
      let maker = try await database.connect()
      let made = try await maker.query("SELECT FROM pg_tablespace WHERE spcname = 'small'")
      if made.rowCount == 0 {
        _ = try await maker.query("CREATE TABLESPACE small LOCATION '\(disk.directory)'")
      }
      await maker.close()
      let stage = try await Stage(database, options: .quick)
      do {
        try await stage.app.execute(
          "CREATE TABLE todos (id int PRIMARY KEY, list_id int, title text)")
        try await stage.app.execute("SET default_tablespace = small")
        _ = try await Installer().install(stage.app)
        try await stage.app.execute("RESET default_tablespace")
        try await stage.deploy(TestRules.byList)
        try await body(stage, disk)
        await stage.close()
      } catch {
        await stage.close()
        throw error
      }
    }
  }

  @Test func `a tick and an application's write without space, and both with space again`()
    async throws
  {
    try await withSmallDisk { stage, disk in
      let log = ObservationLog()
      try await stage.sequencing(observer: log) {
        // The inbox has a page from now on, in which a short list of keys still finds room.
        try await stage.app.execute("INSERT INTO todos VALUES (0, 1, 'first')")
        try await stage.settle()
        try await disk.fill(stage.app)
        try await stage.app.execute(
          "INSERT INTO todos SELECT i, 1, repeat('x', 900) FROM generate_series(1, 200) i")
        try await stage.until { log.failures.count >= 2 }
        for failure in log.failures {
          #expect((failure.error as? StorageError)?.code == .diskFull)
        }
        // Of so many keys the list does not fit: the application hears of it, and nothing is half done.
        let error = await #expect(throws: PostgresError.self) {
          try await stage.app.execute(
            "INSERT INTO todos SELECT i, 1, 'y' FROM generate_series(1000, 60000) i")
        }
        #expect(error?.code == "53100")
        let count = try await stage.app.query("SELECT count(*) FROM todos")
        #expect(count.int(0, 0) == 201)
        let served = try await stage.rows("1")
        #expect(served.count == 1)

        try await disk.empty(stage.app)
        try await stage.settle()
        try await stage.app.execute(
          "INSERT INTO todos SELECT i, 1, 'y' FROM generate_series(1000, 2000) i")
        try await stage.settle()
        let rows = try await stage.rows("1")
        #expect(rows.count == 1202)
        try await stage.expectSound()
      }
    }
  }

  @Test func `a deployment without space says why, and is in force once there is some`()
    async throws
  {
    try await withSmallDisk { stage, disk in
      try await stage.sequencing {
        try await stage.app.execute(
          "INSERT INTO todos SELECT i, 1, repeat('x', 900) FROM generate_series(1, 500) i")
        try await stage.settle()
      }
      try await disk.fill(stage.app)
      let rules = TestRules.rules([
        TestRules.definition(
          "other", table: TestRules.todos, bucket: "'[' || s.list_id || ']'",
          data: "json_build_object('id', s.id, 'title', s.title)::text")
      ])
      let deployer = Deployer(
        configuration: stage.database.configuration(), loop: TestDatabase.loop,
        options: stage.options, patience: .seconds(1))
      let error = await #expect(throws: (any Error).self) {
        try await deployer.deploy(rules, source: "")
      }
      // In registering them already, or in building them.
      #expect((StorageError.explaining(try #require(error)) as? StorageError)?.code == .diskFull)
      let old = try await stage.rows("1")
      #expect(old.count == 500)
      try await stage.expectSound()

      try await disk.empty(stage.app)
      try await deployer.deploy(rules, source: "")
      let rows = try await stage.rows("1", definition: "other")
      #expect(rows.count == 500)
      try await stage.expectSound()
    }
  }
}

/// The server's small disk, filled by the server itself: nobody else sees it.
private struct SmallDisk {
  let directory: String

  func fill(_ connection: PostgresConnection) async throws {
    let error = await #expect(throws: PostgresError.self) {
      _ = try await connection.query(
        "COPY (SELECT repeat('x', 8000) FROM generate_series(1, 100000)) TO '\(directory)/ballast'")
    }
    #expect(error?.code == "53100")
  }

  func empty(_ connection: PostgresConnection) async throws {
    _ = try await connection.query("COPY (SELECT WHERE false) TO '\(directory)/ballast'")
  }
}
