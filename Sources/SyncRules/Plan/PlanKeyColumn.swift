/// One column of a source table's key, with the way its values are written as text.
package struct PlanKeyColumn: Codable, Sendable, Hashable {
  /// How a type becomes a text and an equality on its index.
  package enum Form: String, Codable, Sendable {
    /// The text names the value: integers, uuid, text of a deterministic collation.
    case exact
    /// Different texts may be equal (`numeric`, `citext`, `char`), so the text is compared as well.
    case coarse
    /// Date and time types, printed in ISO form.
    case dateTime
    /// `timestamptz`, printed as its UTC time.
    case instant
    /// `bytea`, printed in hexadecimal.
    case bytes
  }

  package var name: String
  package var typeSchema: String
  package var typeName: String
  package var form: Form

  package init(name: String, typeSchema: String, typeName: String, form: Form) {
    self.name = name
    self.typeSchema = typeSchema
    self.typeName = typeName
    self.form = form
  }

  /// The key column, or nil when its type has no text that is the same in every session.
  package init?(_ column: CatalogColumn) {
    let base = column.type.base
    guard let form = Self.form(of: base, deterministic: column.hasDeterministicCollation) else {
      return nil
    }
    self.init(name: column.name, typeSchema: base.schema, typeName: base.name, form: form)
  }

  private static func form(of type: CatalogType, deterministic: Bool) -> Form? {
    switch type.kind {
    case .enumeration: return .exact
    case .base: break
    default: return nil
    }
    guard type.schema == "pg_catalog" else { return type.name == "citext" ? .coarse : nil }
    switch type.name {
    case "int2", "int4", "int8", "oid", "uuid", "bool", "xid8", "macaddr", "macaddr8", "pg_lsn":
      return .exact
    case "text", "varchar", "name":
      return deterministic ? .exact : .coarse
    case "numeric", "bpchar", "inet", "cidr", "bit", "varbit":
      return .coarse
    case "date", "timestamp": return .dateTime
    case "timestamptz": return .instant
    case "bytea": return .bytes
    default: return nil
    }
  }
}
