import Postgres

/// What a replica's table has to hold, in SQL over the source that knows nothing of the rules file.
struct ExpectedTable: Sendable {
  let name: String
  /// The replica's columns, as SQLite's text; the first one is the id.
  let columns: String
  /// The same rows and columns in PostgreSQL.
  let query: String

  /// Compares every row and gives their number, or fails with the first differences.
  func compare(_ source: PostgresConnection, _ technician: Technician) async throws -> Int {
    let result = try await source.query(query)
    let expected = Self.byID(
      (0..<result.rowCount).map { row in
        (0..<result.columnCount).map { result.string(row, $0) }
      })
    let shown = Self.byID(try await technician.rows("SELECT \(columns) FROM \(name)"))
    let differences = Set(expected.keys).union(shown.keys).filter { expected[$0] != shown[$0] }
    guard differences.isEmpty else {
      let lines = differences.sorted().prefix(5).map { id in
        "  in PostgreSQL \(Self.text(expected[id])), in the replica \(Self.text(shown[id]))"
      }
      throw CommandFailure(
        .failed,
        (["\(technician.name)'s \(name) differs from PostgreSQL in \(differences.count) rows:"]
          + lines).joined(separator: "\n"))
    }
    return expected.count
  }

  private static func byID(_ rows: [[String?]]) -> [String: [String?]] {
    Dictionary(rows.map { (($0.first ?? nil) ?? "", $0) }) { first, second in first + second }
  }

  private static func text(_ row: [String?]?) -> String {
    row.map { $0.map { $0 ?? "NULL" }.joined(separator: " | ") } ?? "nothing"
  }
}

extension ExpectedTable {
  static func all(for technician: Technician) -> [ExpectedTable] {
    let user = technician.name
    let mine = "(SELECT id FROM work_orders WHERE technician_id = '\(user)' AND status <> 'done')"
    let regions = "(SELECT region_id FROM memberships WHERE technician_id = '\(user)')"
    let time = #"'YYYY-MM-DD"T"HH24:MI:SS.US'"#
    return [
      table(
        "work_orders",
        "id, number, customer_id, region_id, technician_id, status, urgency, title, scheduled_on",
        and: "updated_at", as: "to_char(updated_at AT TIME ZONE 'UTC', \(time)) || 'Z'",
        "WHERE id IN \(mine)"),
      table(
        "notes", "id, order_id, author, body", and: "written_at",
        as: "to_char(written_at AT TIME ZONE 'UTC', \(time)) || 'Z'", "WHERE order_id IN \(mine)"),
      table(
        "visits", "id, order_id, technician_id, minutes", and: "starts_at",
        as: "to_char(starts_at, \(time))", "WHERE order_id IN \(mine)"),
      table(
        "order_parts", "id, order_id, part_id, quantity", and: "bulk", as: "(quantity > 10)::int",
        "WHERE order_id IN \(mine)"),
      table(
        "finished_orders", "id, number, customer_id, title, scheduled_on", of: "work_orders",
        "WHERE technician_id = '\(user)' AND status = 'done'"),
      table("regions", "id, name", "WHERE id IN \(regions)"),
      table(
        "customers", "id, region_id, name, street, city, phone", and: "email, language",
        as: "contact ->> 'email', contact ->> 'language'",
        "WHERE region_id IN \(regions) AND NOT archived"),
      table(
        "unassigned_orders", "id, region_id, number, title, urgency, scheduled_on",
        of: "work_orders",
        "WHERE region_id IN \(regions) AND technician_id IS NULL AND status = 'open'"),
      table("technicians", "id, name, phone, skills, hourly_rate", "WHERE id = '\(user)'"),
      table(
        "manuals", "id, title, pages",
        """
        WHERE EXISTS (SELECT FROM jsonb_array_elements_text('\(technician.skills)') AS s
          WHERE manuals.skills ? s)
        """),
      table(
        "parts", "id, name, price, stock",
        and: "CASE WHEN weight_kg IS NOT NULL THEN printf('%.3f', weight_kg) END, discontinued",
        as: "to_char(weight_kg::numeric, 'FM990.000'), discontinued::int",
        "WHERE NOT discontinued"),
    ]
  }

  /// `columns` are called the same on both sides; `others` are `expressions` in PostgreSQL.
  private static func table(
    _ name: String, _ columns: String, and others: String? = nil, as expressions: String? = nil,
    of source: String? = nil, _ condition: String
  ) -> ExpectedTable {
    let here = [columns, others].compactMap(\.self).joined(separator: ", ")
    let there = [columns, expressions].compactMap(\.self).joined(separator: ", ")
    return ExpectedTable(
      name: name, columns: here, query: "SELECT \(there) FROM \(source ?? name) \(condition)")
  }
}
