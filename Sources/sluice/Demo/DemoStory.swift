import Foundation
import Postgres
import SQLiteReplica
import SluiceClient
import SyncService

/// What the demo tells: two replicas fill, a change travels, an order and a permission move.
struct DemoStory: Sendable {
  let demo: Demo
  let source: PostgresConnection
  let url: String
  let auth: ServiceConfiguration.Auth

  private var narrator: Narrator { demo.narrator }

  func tell(staysOpen: Bool) async throws {
    let anna = try await technician("anna", skills: #"["heating", "gas"]"#)
    let bruno = try await technician("bruno", skills: #"["electric"]"#)
    narrator.step("Two technicians' replicas fill")
    for technician in [anna, bruno] { try await fill(technician) }
    for technician in [anna, bruno] { try await tellContents(technician) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for technician in [anna, bruno] {
        group.addTask { try await technician.client.run() }
      }
      group.addTask {
        try await untilLive([anna, bruno])
        let order = try await change(anna)
        try await reassign(order, from: anna, to: bruno)
        try await leaveCoast(anna)
        for technician in [anna, bruno] { try await tellContents(technician) }
        try await compare([anna, bruno])
        if staysOpen { try await stayOpen([anna, bruno], order: order) }
      }
      // The clients end by failing only; the story ends first, or one of them has something to say.
      try await group.next()
      group.cancelAll()
    }
  }

  // MARK: The technicians

  private func technician(_ name: String, skills: String) async throws -> Technician {
    let now = Int(Date().timeIntervalSince1970)
    let claims =
      "{\"sub\":\"\(name)\",\"aud\":[\"fieldservice\"],\"iat\":\(now),\"exp\":\(now + 43_200),"
      + "\"skills\":\(skills)}"
    return try await Technician(
      name: name, skills: skills, token: try TokenKeys.sign(claims, with: auth), url: url,
      folder: demo.folder)
  }

  private func fill(_ technician: Technician) async throws {
    let start = ContinuousClock.now
    try await technician.client.syncOnce()
    let elapsed = ContinuousClock.now - start
    let buckets = try await technician.client.replica.buckets()
    let tick = try await technician.client.replica.lastCheckpoint()?.tick ?? 0
    let rows = buckets.reduce(0) { $0 + $1.rows }
    narrator.tell(
      technician.name,
      "tick \(tick): \(rows) rows in \(buckets.count) buckets, after \(elapsed.inMilliseconds) ms",
      width: 6)
  }

  private func tellContents(_ technician: Technician) async throws {
    var parts: [String] = []
    for (table, name) in [
      ("work_orders", "open orders"), ("customers", "customers"),
      ("unassigned_orders", "unassigned orders"), ("manuals", "manuals"), ("parts", "parts"),
    ] {
      parts.append("\(try await technician.count(table))".leftPadded(4) + " \(name)")
    }
    narrator.tell(technician.name, parts.joined(separator: "  "), width: 6)
  }

  /// Both replicas are live when they have shown a change made after their start.
  private func untilLive(_ technicians: [Technician]) async throws {
    let part = "parts WHERE id = 'P-0001'"
    try await source.execute("UPDATE parts SET stock = stock + 1 WHERE id = 'P-0001'")
    let stock = try await value("SELECT stock FROM \(part)")
    for technician in technicians {
      _ = try await technician.shows(stock, "SELECT stock FROM \(part)")
    }
  }

  private func value(_ query: String) async throws -> String {
    try await source.query(query).string(0, 0) ?? ""
  }

  // MARK: What happens

  /// Changes an order, and gives its id.
  private func change(_ anna: Technician) async throws -> String {
    narrator.step("A dispatcher changes an order of Anna's")
    let order = try await source.query(
      """
      SELECT id, number FROM work_orders WHERE technician_id = 'anna' AND status = 'planned'
      ORDER BY number LIMIT 1
      """)
    let (id, number) = (order.string(0, 0) ?? "", order.string(0, 1) ?? "")
    let title = "Boiler leaks, come quickly"
    narrator.tell("UPDATE work_orders SET title = '\(title)', urgency = 3 … (order \(number))")
    async let shown = anna.shows(title, "SELECT title FROM work_orders WHERE id = '\(id)'")
    _ = try await source.query(
      """
      UPDATE work_orders SET title = $1::text, urgency = 3, updated_at = now()
      WHERE id = $2::uuid
      """, [.text(title), .text(id)])
    let committed = ContinuousClock.now
    let latency = max(.zero, try await shown - committed)
    narrator.tell("in Anna's SQLite file \(latency.inMilliseconds) ms after the commit")
    return id
  }

  private func reassign(
    _ order: String, from anna: Technician, to bruno: Technician
  ) async throws {
    narrator.step("The order goes from Anna to Bruno")
    let itself = "work_orders WHERE id = '\(order)'"
    let notes = try await value("SELECT count(*) FROM notes WHERE order_id = '\(order)'")
    func holders() async throws -> String {
      "Anna holds it: \(try await anna.count(itself)), Bruno holds it: "
        + "\(try await bruno.count(itself))"
    }
    narrator.tell("before: \(try await holders())")
    _ = try await source.query(
      "UPDATE work_orders SET technician_id = 'bruno' WHERE id = $1::uuid", [.text(order)])
    for (technician, held, heldNotes) in [(bruno, "1", notes), (anna, "0", "0")] {
      _ = try await technician.shows(held, "SELECT count(*) FROM \(itself)")
      _ = try await technician.shows(
        heldNotes, "SELECT count(*) FROM notes WHERE order_id = '\(order)'")
    }
    narrator.tell(
      "after:  \(try await holders()), with its notes (\(notes)), its visits and parts")
  }

  private func leaveCoast(_ anna: Technician) async throws {
    narrator.step("Anna no longer works on the coast")
    let customers = "customers WHERE region_id = 'coast'"
    narrator.tell(
      "before: \(try await anna.count(customers)) customers of the coast in her replica")
    try await source.execute(
      "DELETE FROM memberships WHERE technician_id = 'anna' AND region_id = 'coast'")
    _ = try await anna.shows("0", "SELECT count(*) FROM \(customers)")
    _ = try await anna.shows("0", "SELECT count(*) FROM regions WHERE id = 'coast'")
    narrator.tell(
      "after:  \(try await anna.count(customers)) customers; her other regions are untouched")
  }

  private func compare(_ technicians: [Technician]) async throws {
    narrator.step("Both replicas beside PostgreSQL, row by row")
    try await untilLive(technicians)
    for technician in technicians {
      let tables = ExpectedTable.all(for: technician)
      var rows = 0
      for table in tables { rows += try await table.compare(source, technician) }
      narrator.tell(
        technician.name,
        "\(rows)".leftPadded(5) + " rows of \(tables.count) tables, the same as in PostgreSQL",
        width: 6)
    }
  }

  // MARK: Staying open

  /// Says where to look, and shows the checkpoints that come, until it is cancelled.
  private func stayOpen(_ technicians: [Technician], order: String) async throws {
    narrator.step("Look on")
    let sluice = CommandLine.arguments.first ?? "sluice"
    let configuration = "--config \(demo.path("sluice.yaml"))"
    let (file, tokenFile) = (technicians[0].file, technicians[0].tokenFile)
    for (name, command) in [
      ("replicas", "sqlite3 \(file) 'SELECT number, title FROM work_orders LIMIT 5'"),
      ("a change", "psql '\(demo.database)' -c 'UPDATE parts SET stock = 0 WHERE stock < 9'"),
      ("status", "\(sluice) status \(configuration)"),
      ("why", "\(sluice) why --row work_orders/\(order) --user anna \(configuration)"),
      ("pages", "curl -s -H \"Authorization: Bearer $(cat \(tokenFile))\" \(url)/v1/buckets"),
      (
        "a third",
        "\(sluice)-replica watch --url \(url) --token-file \(tokenFile) --db third.db"
      ),
      ("log", demo.path("gateway.log")),
    ] {
      narrator.tell(name, command)
    }
    narrator.step(
      "Serving on \(url). What you change in PostgreSQL shows here; Ctrl-C removes it all.")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for technician in technicians {
        group.addTask {
          for await checkpoint in technician.client.checkpoints {
            let tables = checkpoint.tables.sorted().joined(separator: ", ")
            narrator.tell(
              technician.name,
              "tick \(checkpoint.tick): rows changed in \(tables): \(checkpoint.rowsChanged)",
              width: 6)
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

extension Duration {
  /// Whole milliseconds.
  fileprivate var inMilliseconds: Int { Int(self / .milliseconds(1)) }
}
