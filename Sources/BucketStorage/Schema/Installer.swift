package import Postgres
internal import SQLGeneration

/// Puts the `sluice` schema into a database, brings it up to date, and takes it away.
///
/// The role that installs owns the schema. It needs the right to create schemas in the database, and,
/// when rules are deployed, to own the tables that they name (triggers are made in its name). It need not
/// be a superuser. The gateway may run as another role, see `grants(to:)`; the application's roles need
/// no right on `sluice` at all.
package struct Installer: Sendable {
  package init() {}

  private static let prologue = """
    SET LOCAL search_path = pg_catalog;
    CREATE SCHEMA IF NOT EXISTS sluice;
    CREATE TABLE IF NOT EXISTS sluice.migrations (
      name text PRIMARY KEY,
      applied_at timestamptz NOT NULL DEFAULT pg_catalog.now()
    );
    """

  /// Ids begin where the clock stands, so that another installation's positions are none of this one's.
  private static let firstTick = """
    INSERT INTO sluice.ticks
      (number, stamp, boundary_id, snapshot, generation, system_identifier, timeline, database)
    SELECT 0, sluice.stamp_after('1970-01-01T00:00:00Z'),
      extract(epoch FROM clock_timestamp())::bigint << 20,
      pg_current_snapshot(), 0, sluice.system_identifier(), sluice.timeline(),
      sluice.database_oid()
    WHERE NOT EXISTS (SELECT FROM sluice.ticks);
    INSERT INTO sluice.id_ranges (first_id)
    SELECT t.boundary_id FROM sluice.ticks t WHERE NOT EXISTS (SELECT FROM sluice.id_ranges)
    ORDER BY t.number LIMIT 1;
    """

  private static var helpersName: String { "helpers \(HelperFunctions.version)" }
  private static var captureName: String { "capture \(CaptureScript.version)" }

  /// Every statement of an installation, as one script for `psql`.
  package var script: String {
    let migrations = Migration.all.map { "-- \($0.name)\n\($0.sql)\n\(Self.record($0.name))" }
    return """
      BEGIN;
      \(Self.prologue)
      \(migrations.joined(separator: "\n"))
      -- Functions that compiled rules call
      \(HelperFunctions.sql)
      \(Self.record(Self.helpersName))
      \(Self.record(Self.captureName))
      \(Self.firstTick)
      COMMIT;
      """
  }

  package var uninstallScript: String { "DROP SCHEMA IF EXISTS sluice CASCADE;\n" }

  /// What a role needs in order to run the gateway. Beside it, the role needs SELECT on the tables that
  /// the rules name, unhindered by row security.
  package func grants(to role: String) -> String {
    let role = SQLIdentifier(role)
    return """
      GRANT USAGE ON SCHEMA sluice TO \(role);
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA sluice TO \(role);
      GRANT TRUNCATE ON \(Self.inboxTables) TO \(role);
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA sluice TO \(role);
      GRANT EXECUTE ON FUNCTION sluice.ensure_capture(int) TO \(role);

      """
  }

  private static var inboxTables: String {
    (["sluice.inbox"] + (0..<InboxRing.slotCount).map { "sluice.inbox_\($0)" })
      .joined(separator: ", ")
  }

  /// Applies what the database lacks; answers the names of the steps that it took.
  package func install(_ connection: PostgresConnection) async throws -> [String] {
    try await connection.transaction {
      try await connection.execute(Self.prologue)
      _ = try await connection.query(
        "LOCK TABLE sluice.migrations IN SHARE ROW EXCLUSIVE MODE")
      let known = Set(
        try await Self.column(connection, "SELECT name FROM sluice.migrations"))
      var steps: [String] = []
      for migration in Migration.all where !known.contains(migration.name) {
        try await connection.execute(migration.sql)
        try await connection.execute(Self.record(migration.name))
        steps.append(migration.name)
      }
      if !known.contains(Self.helpersName) {
        try await connection.execute(HelperFunctions.sql)
        try await connection.execute(Self.record(Self.helpersName))
        steps.append(Self.helpersName)
      }
      if !known.contains(Self.captureName) {
        try await bringCaptureUpToDate(connection)
        try await connection.execute(Self.record(Self.captureName))
        steps.append(Self.captureName)
      }
      try await connection.execute(Self.firstTick)
      return steps
    }
  }

  /// Makes the functions of the tables that rules in use read anew. The triggers follow when a gateway
  /// sees that they are of an earlier version; until then they go on with functions of their own.
  private func bringCaptureUpToDate(_ connection: PostgresConnection) async throws {
    let result = try await connection.query(
      "SELECT rules FROM sluice.generations WHERE state <> 'retired' ORDER BY id")
    for row in 0..<result.rowCount {
      guard let text = result.string(row, 0) else { continue }
      for table in try StoredRules.decode(text).tables {
        try await Registration.defineCapture(of: table, connection)
      }
    }
  }

  /// Takes the schema away, with the capture triggers and everything that clients hold positions in.
  package func uninstall(_ connection: PostgresConnection) async throws {
    try await connection.execute(uninstallScript)
  }

  /// The steps that a database lacks; nil when Sluice is not installed at all.
  package func missing(_ connection: PostgresConnection) async throws -> [String]? {
    let exists = try await connection.query(
      "SELECT to_regclass('sluice.migrations') IS NOT NULL")
    guard exists.firstBool(0) == true else { return nil }
    let known = Set(try await Self.column(connection, "SELECT name FROM sluice.migrations"))
    return (Migration.all.map(\.name) + [Self.helpersName, Self.captureName]).filter {
      !known.contains($0)
    }
  }

  private static func column(
    _ connection: PostgresConnection, _ sql: String
  ) async throws -> [String] {
    let result = try await connection.query(sql)
    return (0..<result.rowCount).compactMap { result.string($0, 0) }
  }

  private static func record(_ name: String) -> String {
    "INSERT INTO sluice.migrations (name) VALUES (\(SQLLiteral(name)));"
  }
}
