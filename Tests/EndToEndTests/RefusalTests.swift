import Foundation
import Testing

extension EndToEnd {
  /// PostgreSQL runs, and refuses the gateway: it says why by code, serves what it can, and goes on by itself.
  @Suite(.serialized) struct Refusals {
    private struct Trouble {
      let code: String
      let begin: String
      let end: String
      /// Whether requests and /ready find it too, or only the sequencer.
      var isTotal = true
    }

    @Test("a login, a connection, a database or a right that is refused, and given back")
    func refusals() async throws {
      try await GrantStage.set { stage in
        try await stage.install(.separate)
        let cut =
          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'gw';"
        let elsewhere = stage.admin(of: "postgres")
        try await stage.serve { gateway, ann in
          for trouble in [
            Trouble(
              code: "SLUICE_LOGIN_REFUSED", begin: "ALTER ROLE gw NOLOGIN; " + cut,
              end: "ALTER ROLE gw LOGIN"),
            Trouble(
              code: "SLUICE_TOO_MANY_CONNECTIONS",
              begin: "ALTER ROLE gw CONNECTION LIMIT 0; " + cut,
              end: "ALTER ROLE gw CONNECTION LIMIT -1"),
            Trouble(
              code: "SLUICE_NOT_PERMITTED",
              begin: "REVOKE CONNECT ON DATABASE \"\(stage.name)\" FROM PUBLIC; " + cut,
              end: "GRANT CONNECT ON DATABASE \"\(stage.name)\" TO PUBLIC"),
            // As if dropped; what is in it comes back with the name.
            Trouble(
              code: "SLUICE_NO_DATABASE",
              begin: cut + "ALTER DATABASE \"\(stage.name)\" RENAME TO away",
              end: "ALTER DATABASE away RENAME TO \"\(stage.name)\""),
          ] {
            try await elsewhere.retrying(trouble.begin)
            try await says(trouble.code, gateway)
            try await elsewhere.retrying(trouble.end)
            try await goesOn(stage, gateway, ann, after: trouble)
          }
          for trouble in [
            Trouble(
              code: "SLUICE_NOT_PERMITTED", begin: "REVOKE USAGE ON SCHEMA sluice FROM gw",
              end: "GRANT USAGE ON SCHEMA sluice TO gw"),
            Trouble(
              code: "SLUICE_NOT_PERMITTED", begin: "REVOKE SELECT ON sluice.ticks FROM gw",
              end: "GRANT SELECT ON sluice.ticks TO gw"),
            Trouble(
              code: "SLUICE_NOT_PERMITTED", begin: "REVOKE UPDATE ON sluice.entries FROM gw",
              end: "GRANT UPDATE ON sluice.entries TO gw", isTotal: false),
          ] {
            try await stage.admin.run(trouble.begin)
            try await stage.write()
            if trouble.isTotal {
              try await says(trouble.code, gateway)
            } else {
              try await eventually("the log says why") {
                gateway.output.split(separator: "\n").contains {
                  $0.contains("sequencer.failed") && $0.contains(trouble.code)
                    && $0.contains("permission denied for table entries")
                }
              }
              #expect(try await HTTP.get(port: gateway.port, "/ready").status == 200)
              let metrics = try await HTTP.get(port: gateway.port, "/metrics").body
              #expect(
                metrics.contains("sluice_sequencer_failures_total{code=\"\(trouble.code)\"}"))
            }
            try await stage.admin.run(trouble.end)
            try await goesOn(stage, gateway, ann, after: trouble)
          }
          #expect(try await stage.admin.run("SELECT count(*) FROM sluice.suspensions") == "0")
          let verified = try await run(
            "sluice", ["verify", "--config", gateway.configuration.path])
          #expect(verified.status == 0, "\(verified.output)\(verified.error)")
          for error in ann.errors { #expect(error.contains("SLUICE_"), "\(error)") }
        }
      }
    }

    /// In /ready and in the log, and with no word of what PostgreSQL said to those who ask for data.
    private func says(_ code: String, _ gateway: Gateway) async throws {
      try await eventually("/ready says \(code)") {
        let answer = try await HTTP.get(port: gateway.port, "/ready")
        return answer.status == 503 && answer.body.contains(code)
      }
      try await eventually("the log says \(code)") {
        gateway.output.split(separator: "\n").contains {
          $0.contains("sequencer.failed") && $0.contains("\"code\":\"\(code)\"")
        }
      }
      #expect(try await HTTP.get(port: gateway.port, "/health").status == 200)
    }

    private func goesOn(
      _ stage: GrantStage, _ gateway: Gateway, _ ann: WireReplica, after trouble: Trouble
    ) async throws {
      try await stage.write()
      try await stage.shows(ann, "what was written after \(trouble.begin)")
      try await eventually("/ready is content after \(trouble.begin)") {
        try await HTTP.get(port: gateway.port, "/ready").status == 200
      }
    }
  }
}

extension GrantStage {
  fileprivate func admin(of database: String) -> Source {
    Source(connectionString: admin.connectionString.replacing("/\(name)?", with: "/\(database)?"))
  }

  /// A row of ann's.
  fileprivate func write() async throws {
    try await source(as: "writer").run(
      "INSERT INTO app.tasks SELECT 'w' || count(*), 1, 'a', 'w' FROM app.tasks")
  }
}

extension Source {
  /// The gateway connects again and again: what needs a database without sessions may have to be tried.
  fileprivate func retrying(_ script: String) async throws {
    try await eventually("done: \(script)", within: 10, every: 0.05) {
      do {
        try await run(script)
        return true
      } catch let error as Failed where error.message.contains("is being accessed") {
        return false
      }
    }
  }
}
