import EventLoop
import TestSupport
import Testing

@testable import Postgres

/// Connections that the server refuses: the error has the SQLSTATE that libpq tells in a text alone.
@Suite struct PostgresRefusalTests {
  @Test func `a server that refuses a connection says why by SQLSTATE`() async throws {
    try await withDatabase { database in
      let admin = try await database.connect()
      let suffix = UInt32.random(in: 0 ... .max)
      try await admin.execute(
        """
        CREATE ROLE idle_\(suffix); CREATE ROLE full_\(suffix) LOGIN CONNECTION LIMIT 0;
        CREATE ROLE shut_\(suffix) LOGIN; REVOKE CONNECT ON DATABASE \(database.name) FROM PUBLIC
        """)
      for (role, name, code) in [
        ("idle_\(suffix)", database.name, "28000"), ("nobody_\(suffix)", database.name, "28000"),
        ("full_\(suffix)", database.name, "53300"), ("shut_\(suffix)", database.name, "42501"),
        ("sluice", "no such: database", "3D000"),
      ] {
        let configuration = PostgresConfiguration(
          connectionString: database.connectionString.replacing("//sluice@", with: "//\(role)@")
            .replacing("/\(database.name)?", with: "/\(name.replacing(" ", with: "%20"))?"))
        let error = await #expect(throws: PostgresError.self) {
          try await PostgresConnection.connect(configuration, on: TestDatabase.loop)
        }
        #expect(error?.code == code, "\(role): \(error?.debugDescription ?? "")")
        #expect(error?.isConnectionFailure == true)
        #expect(error?.message.contains("LOCATION") == false)
        #expect(error?.message.isEmpty == false)
      }
      try await admin.execute(
        "DROP ROLE idle_\(suffix); DROP ROLE full_\(suffix); DROP ROLE shut_\(suffix)")
      await admin.close()
    }
  }

  @Test(arguments: [
    (
      "connection to server on socket \"/run/p/.s.PGSQL.5432\" failed: FATAL:  3D000: database \"x\" "
        + "does not exist\nLOCATION:  InitPostgres, postinit.c:886\n",
      "3D000", "database \"x\" does not exist"
    ),
    (
      "connection to server at \"2001:DB8::1\", port 5432 failed: FATAL:  53300: zu viele: Clients",
      "53300", "zu viele: Clients"
    ),
    (
      "connection to server at \"h\" (10.0.0.1), port 5432 failed: Connection refused\n\tIs the server "
        + "running on that host and accepting TCP/IP connections?",
      "",
      "connection to server at \"h\" (10.0.0.1), port 5432 failed: Connection refused\n\tIs the "
        + "server running on that host and accepting TCP/IP connections?"
    ),
  ])
  func `the SQLSTATE is found in any language, or not at all`(
    text: String, code: String, message: String
  ) {
    let error = PostgresError(refusal: text)
    #expect(error.code == code)
    #expect(error.message == message)
  }
}
