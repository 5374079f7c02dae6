import SyncRules

/// SQL for a value, with the PostgreSQL type that carries it.
struct SQLValue {
  /// How a SQLite value stands in PostgreSQL.
  enum Form {
    case null
    /// INTEGER 1 or 0 as a `boolean`.
    case boolean
    /// INTEGER as any of `int2` … `numeric`.
    case integer
    /// REAL as `float8`.
    case real
    /// TEXT as `text`.
    case text
    /// TEXT as any type whose printed form needs no escape in JSON.
    case plain
    case blob
    /// A class known per value, as a `jsonb` scalar.
    case dynamic
  }

  var sql: String
  var form: Form

  init(_ sql: String, _ form: Form) {
    self.sql = sql
    self.form = form
  }

  static let null = SQLValue("NULL", .null)

  /// A boolean that is never NULL: the truth of the value.
  var truth: String {
    switch form {
    case .null, .blob: "FALSE"
    case .boolean: "(\(sql)) IS TRUE"
    case .integer, .real: "((\(sql)) <> 0) IS TRUE"
    case .text, .plain: "sluice.text_truth(\(asText))"
    case .dynamic: "sluice.dyn_truth(\(sql))"
    }
  }

  /// The text cast, as `text`.
  var asText: String {
    switch form {
    case .null: "NULL::text"
    case .boolean: "((\(sql))::int)::text"
    case .integer: "(\(sql))::text"
    case .real: "sluice.real_text(\(sql))"
    case .text: sql
    case .plain: "(\(sql))::text"
    case .blob: "sluice.blob_text(\(sql))"
    case .dynamic: "sluice.dyn_text(\(sql))"
    }
  }

  /// The bytes of the text cast, or the blob, as `bytea`.
  var asBytes: String {
    form == .blob ? sql : "convert_to(\(asText), 'UTF8')"
  }

  /// The integer cast, as a number.
  var asInteger: String {
    switch form {
    case .null: "NULL::numeric"
    case .boolean: "(\(sql))::int"
    case .integer: sql
    case .real: "sluice.real_floor(\(sql))"
    case .text, .plain, .blob: "sluice.text_integer(\(asText))"
    case .dynamic: "sluice.dyn_to_integer(\(sql))"
    }
  }

  /// The real cast, as `float8`.
  var asReal: String {
    switch form {
    case .null: "NULL::float8"
    case .boolean: "((\(sql))::int)::float8"
    case .integer: "sluice.parse_real((\(sql))::text)"
    case .real: sql
    case .text, .plain, .blob: "sluice.text_real(\(asText))"
    case .dynamic: "sluice.dyn_to_real(\(sql))"
    }
  }

  /// The value as a `jsonb` scalar.
  var asDynamic: String {
    switch form {
    case .null: "NULL::jsonb"
    case .boolean: "to_jsonb((\(sql))::int)"
    case .integer: "to_jsonb(\(sql))"
    case .real: "sluice.dyn_real(\(sql))"
    case .text, .plain, .blob: "to_jsonb(\(asText))"
    case .dynamic: sql
    }
  }

  /// A number for arithmetic: texts by their leading number, as a `jsonb` scalar.
  var asDynamicNumber: String {
    switch form {
    case .text, .plain, .blob: "sluice.text_number(\(asText))"
    default: asDynamic
    }
  }

  /// The value as JSON text, `null` for NULL. A blob has none.
  var asJSON: String {
    switch form {
    case .null, .blob: "'null'"
    case .boolean: "CASE WHEN \(sql) THEN '1' WHEN NOT (\(sql)) THEN '0' ELSE 'null' END"
    case .integer: "coalesce((\(sql))::text, 'null')"
    case .real:
      "CASE WHEN abs(\(sql)) >= 1e-4 AND abs(\(sql)) < 1e15 AND \(sql) <> trunc(\(sql)) "
        + "THEN (\(sql))::text ELSE sluice.real_json(\(sql)) END"
    case .text: "coalesce(to_json(\(sql))::text, 'null')"
    case .plain: "coalesce('\"' || (\(sql))::text || '\"', 'null')"
    case .dynamic: "sluice.dyn_json(\(sql))"
    }
  }

  /// The value as a part of a bucket name or lookup key, NULL for NULL and for a blob.
  var asKey: String {
    switch form {
    case .null, .blob: "NULL::text"
    case .boolean: "((\(sql))::int)::text"
    case .integer: "(\(sql))::text"
    case .real: "sluice.real_text(\(sql))"
    case .text: "to_json(\(sql))::text"
    case .plain: "'\"' || (\(sql))::text || '\"'"
    case .dynamic: "sluice.dyn_key(\(sql))"
    }
  }
}
