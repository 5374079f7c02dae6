package import SyncRules

/// The columns that identify a row of a source table, and the SQL that writes them as one text.
///
/// The text is the same in a trigger, in a tick and in a backfill, whatever the session's settings
/// and search path: every cast, function and operator names its schema. One column gives its text
/// itself, several give the text of a text array.
package struct SourceKey: Codable, Sendable, Hashable {
  package typealias Column = PlanKeyColumn
  package typealias Form = PlanKeyColumn.Form

  package var columns: [Column]

  package init(columns: [Column]) {
    self.columns = columns
  }

  /// The key of these columns; nil when there is none, or when a type has no text that is the same
  /// in every session.
  package init?(_ catalogColumns: [CatalogColumn]) {
    let columns = catalogColumns.compactMap { PlanKeyColumn($0) }
    guard !columns.isEmpty, columns.count == catalogColumns.count else { return nil }
    self.columns = columns
  }

  /// SQL for the key of the row `alias` as one text.
  package func text(of alias: String) -> String {
    let texts = columns.map { $0.text(of: alias) }
    if texts.count == 1 { return texts[0] }
    return "(ARRAY[\(texts.joined(separator: ", "))]::pg_catalog.text[])::pg_catalog.text"
  }

  /// SQL for the same text in a capture trigger, which has to work whatever became of the columns. A
  /// column that is missing is found in `absentColumns`, further out, and makes the text NULL.
  package var capturedText: String {
    let texts = columns.map(\.capturedText)
    if texts.count == 1 { return texts[0] }
    let missing = zip(columns, texts).map { column, text in
      "(\(column.isCaughtByType ? text : SQLIdentifier(column.name).description)) IS NULL"
    }
    return "CASE WHEN \(missing.joined(separator: " OR ")) THEN NULL "
      + "ELSE (ARRAY[\(texts.joined(separator: ", "))]::pg_catalog.text[])::pg_catalog.text END"
  }

  /// A query for one row that has every column of the key, all of them NULL.
  package var absentColumns: String {
    let items = columns.map { "NULL::pg_catalog.text AS \(SQLIdentifier($0.name))" }
    return "SELECT \(items.joined(separator: ", "))"
  }

  /// SQL that is true when the row `alias` has the key whose text is the SQL expression `keyText`.
  ///
  /// The comparison is on the bare column, so an index on the key serves it.
  package func matches(alias: String, keyText: String) -> String {
    parts(of: keyText).enumerated().map { index, part in
      let column = columns[index]
      let bare = SQLIdentifier(alias).member(column.name)
      let equality = "\(bare) OPERATOR(\(column.operatorSchema).=) \(column.value(of: part))"
      guard column.form == .coarse else { return equality }
      return "\(equality) AND \(column.text(of: alias)) COLLATE pg_catalog.\"C\" "
        + "OPERATOR(pg_catalog.=) (\(part)) COLLATE pg_catalog.\"C\""
    }.joined(separator: " AND ")
  }

  /// The bare key columns of `alias`, in the order of their index: for `ORDER BY`.
  package func order(alias: String) -> String {
    columns.map { SQLIdentifier(alias).member($0.name).description }.joined(separator: ", ")
  }

  /// SQL that is true when the row `alias` comes after the key `keyText` in that order.
  package func after(alias: String, keyText: String) -> String {
    let values = parts(of: keyText).enumerated().map { columns[$0].value(of: $1) }
    if columns.count == 1 {
      return "\(order(alias: alias)) OPERATOR(\(columns[0].operatorSchema).>) \(values[0])"
    }
    return "(\(order(alias: alias))) > (\(values.joined(separator: ", ")))"
  }

  /// A query for the key texts of the table in key order: column `key`.
  ///
  /// `after` is an SQL expression for the last key of the page before, `limit` one for the number
  /// of rows.
  package func page(schema: String, table: String, after: String?, limit: String) -> String {
    "SELECT \(text(of: "s")) AS key \(pageOf(schema, table, after: after, limit: limit))"
  }

  /// The same page as rows with these columns.
  package func page(
    of columns: [String], schema: String, table: String, after: String?, limit: String
  ) -> String {
    let list = columns.map { SQLIdentifier("s").member($0).description }.joined(separator: ", ")
    return "SELECT \(list) \(pageOf(schema, table, after: after, limit: limit))"
  }

  private func pageOf(
    _ schema: String, _ table: String, after: String?, limit: String
  ) -> String {
    let condition = after.map { " WHERE " + self.after(alias: "s", keyText: $0) } ?? ""
    return "FROM \(SQLIdentifier(schema: schema, name: table)) s"
      + "\(condition) ORDER BY \(order(alias: "s")) LIMIT \(limit)"
  }

  private func parts(of keyText: String) -> [String] {
    if columns.count == 1 { return ["(\(keyText))"] }
    return columns.indices.map { "((\(keyText))::pg_catalog.text[])[\($0 + 1)]" }
  }
}

extension PlanKeyColumn {
  fileprivate var operatorSchema: String {
    form == .coarse ? SQLIdentifier(typeSchema).description : "pg_catalog"
  }

  private var type: String {
    SQLIdentifier(schema: typeSchema, name: typeName).description
  }

  /// Whether a value of another type than this one has no text in a capture trigger.
  fileprivate var isCaughtByType: Bool { form == .instant || form == .bytes }

  fileprivate var capturedText: String {
    let column = SQLIdentifier(name).description
    switch form {
    case .exact, .coarse, .dateTime: return text(ofColumn: column)
    case .instant: return "sluice.instant_text(\(column))"
    case .bytes: return "sluice.bytes_text(\(column))"
    }
  }

  fileprivate func text(of alias: String) -> String {
    text(ofColumn: SQLIdentifier(alias).member(name).description)
  }

  private func text(ofColumn column: String) -> String {
    switch form {
    case .exact, .coarse:
      // char(n) keeps its padding in a text made by its output function only.
      return typeName == "bpchar"
        ? "pg_catalog.concat(\(column))" : "(\(column))::pg_catalog.text"
    case .dateTime:
      return "(pg_catalog.to_json(\(column)) OPERATOR(pg_catalog.#>>) '{}'::pg_catalog.text[])"
    case .instant:
      return "(pg_catalog.to_json(pg_catalog.timezone('UTC', \(column))) "
        + "OPERATOR(pg_catalog.#>>) '{}'::pg_catalog.text[])"
    case .bytes:
      return "pg_catalog.encode(\(column), 'hex')"
    }
  }

  /// The text `part` as a value of the column's type. Integers are as wide as can be, so that a column
  /// may become wider.
  fileprivate func value(of part: String) -> String {
    if typeSchema == "pg_catalog", ["int2", "int4"].contains(typeName) {
      return "\(part)::pg_catalog.int8"
    }
    switch form {
    case .exact, .coarse, .dateTime:
      return "\(part)::\(type)"
    case .instant:
      return "pg_catalog.timezone('UTC', \(part)::pg_catalog.timestamp)"
    case .bytes:
      return "pg_catalog.decode(\(part), 'hex')"
    }
  }
}
