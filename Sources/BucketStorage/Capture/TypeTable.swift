internal import Postgres
internal import SyncRules

/// The database's types, put together from their catalog rows on demand.
struct TypeTable {
  private struct Row {
    let schema: String
    let name: String
    let kind: String
    let base: Int64
    let element: Int64
    let isArray: Bool
    let relation: Int64
    let subtype: Int64
    let range: Int64
  }

  private var rows: [Int64: Row] = [:]
  private var attributes: [Int64: [(name: String, type: Int64)]] = [:]

  init(types: PostgresResult, attributes found: PostgresResult) {
    for row in 0..<types.rowCount {
      guard let oid = types.int(row, 0), let schema = types.string(row, 1),
        let name = types.string(row, 2), let kind = types.string(row, 3)
      else { continue }
      rows[oid] = Row(
        schema: schema, name: name, kind: kind, base: types.int(row, 4) ?? 0,
        element: types.int(row, 5) ?? 0, isArray: types.string(row, 6) == "A",
        relation: types.int(row, 7) ?? 0, subtype: types.int(row, 8) ?? 0,
        range: types.int(row, 9) ?? 0)
    }
    for row in 0..<found.rowCount {
      guard let relation = found.int(row, 0), let name = found.string(row, 1),
        let type = found.int(row, 2)
      else { continue }
      attributes[relation, default: []].append((name, type))
    }
  }

  /// The type with this oid. Composite types cannot hold themselves, but arrays of them can, so depth is
  /// limited.
  func type(_ oid: Int64, depth: Int = 0) -> CatalogType {
    guard let row = rows[oid], depth < 16 else {
      return CatalogType(oid: UInt32(truncatingIfNeeded: oid), name: "unknown")
    }
    let next = depth + 1
    let kind: CatalogType.Kind
    switch row.kind {
    case "e": kind = .enumeration
    case "d": kind = .domain(type(row.base, depth: next))
    case "c":
      kind = .composite(
        (attributes[row.relation] ?? []).map {
          CatalogAttribute(name: $0.name, type: type($0.type, depth: next))
        })
    case "r": kind = .range(type(row.subtype, depth: next))
    case "m": kind = .multirange(type(row.subtype, depth: next))
    default:
      kind = row.isArray && row.element != 0 ? .array(type(row.element, depth: next)) : .base
    }
    return CatalogType(
      oid: UInt32(truncatingIfNeeded: oid), schema: row.schema, name: row.name, kind: kind)
  }
}
