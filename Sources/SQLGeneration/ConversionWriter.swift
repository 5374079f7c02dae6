import SyncRules

/// Writes the SQLite value of a column or an array's element.
struct ConversionWriter {
  /// The value of `sql`, whose PostgreSQL type has this conversion.
  func value(_ sql: String, _ conversion: ValueConversion) -> SQLValue {
    switch conversion {
    case .boolean: return SQLValue(sql, .boolean)
    case .integer: return SQLValue(integer(sql), .integer)
    case .real(let single):
      return SQLValue(single ? "((\(sql))::text)::float8" : sql, .real)
    case .text(plain: true): return SQLValue(sql, .plain)
    case .text(plain: false), .json: return SQLValue("(\(sql))::text", .text)
    case .padded: return SQLValue(nullable(sql, "concat(\(sql))"), .text)
    case .blob: return SQLValue(sql, .blob)
    case .date:
      return SQLValue(
        "CASE \(sql) WHEN 'infinity' THEN '9999-12-31' WHEN '-infinity' THEN '0000-01-01' "
          + "ELSE (\(sql))::text END", .plain)
    case .time(.postgres): return SQLValue("(\(sql))::text", .plain)
    case .time(.iso(let digits)):
      return SQLValue("to_char(\(sql), 'HH24:MI:SS\(fraction(digits))')", .plain)
    case .timestamp(let format):
      return SQLValue(timestamp(sql, format, zone: ""), .plain)
    case .instant(let format):
      return SQLValue(
        timestamp("timezone('UTC', \(sql))", format, zone: "Z", of: sql), .plain)
    case .lsn: return SQLValue("sluice.lsn_text(\(sql))", .plain)
    case .array(let element): return SQLValue(array(sql, element), .text)
    case .domain(let schema, let name, let base):
      return value("(\(sql))::\(SQLIdentifier(schema: schema, name: name))", base)
    case .composite(let attributes): return SQLValue(composite(sql, attributes), .text)
    case .range(let subtype): return SQLValue(range(sql, subtype, asText: true), .text)
    case .multirange(let subtype):
      let elements = "SELECT string_agg(\(range("m", subtype, asText: false)), ',') "
      return SQLValue(
        nullable(sql, "'[' || coalesce((\(elements) FROM unnest(\(sql)) m), '') || ']'"), .text)
    }
  }

  private func nullable(_ sql: String, _ value: String) -> String {
    "CASE WHEN \(sql) IS NOT NULL THEN \(value) END"
  }

  /// `oid` has no operators with the other integers.
  private func integer(_ sql: String) -> String {
    "(\(sql))::bigint"
  }

  private func fraction(_ digits: Int) -> String {
    switch digits {
    case 0: ""
    case 3: ".MS"
    default: ".US"
    }
  }

  private func timestamp(
    _ sql: String, _ format: ValueConversion.DateTimeFormat, zone: String,
    of original: String? = nil
  ) -> String {
    let separator: String
    let zeros: String
    let text: String
    switch format {
    case .postgres:
      separator = " "
      zeros = ""
      text = zone.isEmpty ? "(\(sql))::text" : "(\(sql))::text || '\(zone)'"
    case .iso(let digits):
      separator = "T"
      zeros = digits == 0 ? "" : "." + String(repeating: "0", count: digits)
      text = "to_char(\(sql), 'YYYY-MM-DD\"T\"HH24:MI:SS\(fraction(digits))\(zone)')"
    }
    let tested = original ?? sql
    let latest = "9999-12-31\(separator)23:59:59\(zeros)\(zone)"
    let earliest = "0000-01-01\(separator)00:00:00\(zeros)\(zone)"
    // Years before 1 and, with a zone, after 9999 have no text.
    let type = zone.isEmpty ? "timestamp" : "timestamptz"
    let utc = zone.isEmpty ? "" : "+00"
    let beyond = zone.isEmpty ? "" : "WHEN \(tested) >= \(type) '10000-01-01\(utc)' THEN NULL "
    return "CASE WHEN \(tested) = 'infinity' THEN '\(latest)' "
      + "WHEN \(tested) = '-infinity' THEN '\(earliest)' "
      + "WHEN \(tested) < \(type) '0001-01-01\(utc)' THEN NULL \(beyond)ELSE \(text) END"
  }

  /// The JSON text of one element or attribute.
  private func element(_ sql: String, _ conversion: ValueConversion) -> String {
    switch conversion {
    case .json, .array, .composite, .multirange:
      return "coalesce(\(value(sql, conversion).sql), 'null')"
    case .range(let subtype):
      return "coalesce(\(range(sql, subtype, asText: false)), 'null')"
    case .domain(let schema, let name, let base):
      return element("(\(sql))::\(SQLIdentifier(schema: schema, name: name))", base)
    default:
      return value(sql, conversion).asJSON
    }
  }

  private func array(_ sql: String, _ conversion: ValueConversion) -> String {
    "sluice.nest(CASE WHEN \(sql) IS NOT NULL THEN ARRAY(SELECT \(element("u.v", conversion)) "
      + "FROM unnest(\(sql)) WITH ORDINALITY u(v, n) ORDER BY u.n) END, "
      + "sluice.dimensions(\(sql)))"
  }

  private func composite(
    _ sql: String, _ attributes: [ValueConversion.Attribute]
  ) -> String {
    let members = attributes.enumerated().map { index, attribute in
      let name = SQLLiteral("\(index == 0 ? "" : ",")\(JSONText.string(attribute.name)):")
      let member = "(\(sql)).\(SQLIdentifier(attribute.name))"
      return "\(name) || \(element(member, attribute.conversion))"
    }
    let text = (["'{'"] + members + ["'}'"]).joined(separator: " || ")
    return "CASE WHEN (\(sql))::text IS NOT NULL THEN \(text) END"
  }

  private func range(_ sql: String, _ subtype: ValueConversion, asText: Bool) -> String {
    let lower =
      "CASE WHEN lower_inf(\(sql)) THEN 'null' ELSE \(element("lower(\(sql))", subtype)) END"
    let upper =
      "CASE WHEN upper_inf(\(sql)) THEN 'null' ELSE \(element("upper(\(sql))", subtype)) END"
    return "CASE WHEN isempty(\(sql)) THEN '\(asText ? "empty" : "\"empty\"")' "
      + "WHEN \(sql) IS NOT NULL THEN '{\"lower\":' || \(lower) || ',\"upper\":' || \(upper) "
      + "|| ',\"lower_exclusive\":' || (NOT lower_inc(\(sql)))::int "
      + "|| ',\"upper_exclusive\":' || (NOT upper_inc(\(sql)))::int || '}' END"
  }
}

/// JSON made while compiling.
enum JSONText {
  /// A JSON string, escaped as PostgreSQL's `to_json` does.
  static func string(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\u{8}": result += "\\b"
      case "\u{C}": result += "\\f"
      case "\0"..<" ":
        let hex = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
