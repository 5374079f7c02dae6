import Foundation
import TestSupport

/// A database whose roles have the rights that the documentation gives them: `app_owner` has the tables,
/// `writer` is the application's, `gw` the gateway's.
struct GrantStage {
  /// The two ways: the gateway's role owns the schema `sluice`, or the tables' owner installs and deploys.
  enum Way: CaseIterable { case owner, separate }

  let name: String
  let admin: Source
  let rulesFile: URL

  /// Roles belong to a whole server.
  private static let cluster = PostgresCluster()

  private static let tables = """
    CREATE ROLE app_owner LOGIN; CREATE ROLE gw LOGIN; CREATE ROLE writer LOGIN;
    CREATE SCHEMA app AUTHORIZATION app_owner;
    SET ROLE app_owner;
    CREATE TABLE app.tasks (id text, part int, owner text, title text, PRIMARY KEY (id, part));
    CREATE TABLE app.events (id bigint, day date NOT NULL, owner text, PRIMARY KEY (id, day))
      PARTITION BY RANGE (day);
    CREATE TABLE app.events_1 PARTITION OF app.events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
    CREATE TABLE app.members (person text PRIMARY KEY, owner text);
    INSERT INTO app.members VALUES ('ann', 'a'), ('bob', 'b');
    GRANT USAGE ON SCHEMA app TO writer;
    GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA app TO writer;
    RESET ROLE;
    """

  private static let rules = """
    bucket_definitions:
      owned:
        parameters: SELECT owner FROM app.members WHERE person = request.user_id()
        data:
          - SELECT id || ':' || part AS id, title FROM app.tasks WHERE owner = bucket.owner
          - SELECT id, day FROM app.events WHERE owner = bucket.owner
    """

  /// Sets the stage, plays `body` on it, and clears it away, also when `body` throws.
  static func set(_ body: (GrantStage) async throws -> Void) async throws {
    try await withDatabase(in: cluster) { database in
      let file = try Workspace.shared.folder("grants").appending(path: "rules.yaml")
      try Data(rules.utf8).write(to: file)
      let stage = GrantStage(
        name: database.name, admin: Source(connectionString: database.connectionString),
        rulesFile: file)
      try await stage.admin.run(tables)
      do {
        try await body(stage)
      } catch {
        // The error of `body` is the one to see.
        try? await stage.dropRoles()
        throw error
      }
      try await stage.dropRoles()
    }
  }

  func source(as role: String) -> Source {
    Source(
      connectionString: admin.connectionString.replacing(
        "//\(PostgresCluster.user)@", with: "//\(role)@"))
  }

  @discardableResult
  func sluice(_ arguments: String...) async throws -> String {
    let result = try await run("sluice", arguments)
    guard result.status == 0 else {
      throw Source.Failed(message: "sluice \(arguments): \(result.output)\(result.error)")
    }
    return result.output
  }

  func install(_ way: Way) async throws {
    let gateway = source(as: "gw").connectionString
    switch way {
    case .owner:
      try await admin.run("GRANT CREATE ON DATABASE \"\(name)\" TO gw; GRANT app_owner TO gw")
      try await sluice("install", "--database", gateway)
      try await sluice("deploy", rulesFile.path, "--database", gateway)
    case .separate:
      try await admin.run("GRANT CREATE ON DATABASE \"\(name)\" TO app_owner")
      let owner = source(as: "app_owner")
      try await owner.run(try await sluice("install", "--print", "--role", "gw"))
      try await sluice("deploy", rulesFile.path, "--database", owner.connectionString)
      try await owner.run(
        "GRANT USAGE ON SCHEMA app TO gw; GRANT SELECT ON ALL TABLES IN SCHEMA app TO gw")
    }
  }

  /// Runs a gateway as `gw`, and a replica of ann's.
  func serve(_ body: (Gateway, WireReplica) async throws -> Void) async throws {
    let key = (0..<32).map { _ in UInt8.random(in: 0...255) }
    let gateway = try Gateway(source: source(as: "gw"), rules: Self.rules, key: key)
    try await gateway.start(deploying: false)
    let token = try SignedToken.make(user: "ann", key: key)
    let ann = WireReplica("ann", port: { gateway.port }, token: { token })
    ann.connect()
    do {
      try await body(gateway, ann)
      guard ann.violations.isEmpty else { throw Source.Failed(message: "\(ann.violations)") }
    } catch {
      let log = "the gateway's log ends:\n\(gateway.output.suffix(3000))\n"
      FileHandle.standardError.write(Data(log.utf8))
      ann.disconnect()
      await gateway.stop()
      throw error
    }
    ann.disconnect()
    await gateway.stop()
  }

  /// Waits until the replica holds what is ann's in the source.
  func shows(_ replica: WireReplica, _ what: String) async throws {
    let tasks = try await admin.lines(
      "SELECT id || ':' || part FROM app.tasks WHERE owner = 'a'")
    let events = try await admin.lines("SELECT id FROM app.events WHERE owner = 'a'")
    try await replica.shows(what) { content in
      Set((content["tasks"] ?? [:]).keys) == Set(tasks)
        && Set((content["events"] ?? [:]).keys) == Set(events)
    }
  }

  private func dropRoles() async throws {
    try await admin.run(
      """
      DROP OWNED BY gw, writer, app_owner CASCADE;
      DROP ROLE gw; DROP ROLE writer; DROP ROLE app_owner
      """)
  }
}
