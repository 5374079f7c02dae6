/// How a column's PostgreSQL value becomes a SQLite value.
package indirect enum ValueConversion: Codable, Sendable, Hashable {
  case boolean
  case integer
  /// `float4` goes through its shortest text, so that 0.1 stays 0.1.
  case real(single: Bool)
  /// The type's printed text. `plain` when it never holds a character that JSON escapes.
  case text(plain: Bool)
  /// `char(n)`, with its padding.
  case padded
  case blob
  /// `binary`: `jsonb`.
  case json(binary: Bool)
  case date
  case time(DateTimeFormat)
  case timestamp(DateTimeFormat)
  case instant(DateTimeFormat)
  case lsn
  /// A JSON array whose elements are converted each.
  case array(ValueConversion)
  /// A domain: the value as its base type `schema.name`, then that type's conversion.
  case domain(schema: String, name: String, ValueConversion)
  case composite([Attribute])
  case range(ValueConversion)
  case multirange(ValueConversion)

  /// One attribute of a composite value.
  package struct Attribute: Codable, Sendable, Hashable {
    package var name: String
    package var conversion: ValueConversion

    package init(name: String, conversion: ValueConversion) {
      self.name = name
      self.conversion = conversion
    }
  }

  /// The text form of dates with times.
  package enum DateTimeFormat: Codable, Sendable, Hashable {
    /// A blank between date and time, only the digits present.
    case postgres
    /// A `T` between date and time and this many digits of a second: 0, 3 or 6.
    case iso(digits: Int)
  }

  /// The conversion of a type under these options.
  package init(_ type: CatalogType, options: RuleOptions) {
    switch type.kind {
    case .enumeration:
      self = .text(plain: false)
    case .domain(let base):
      self =
        options.customPostgresTypes
        ? .domain(
          schema: type.base.schema, name: type.base.name,
          ValueConversion(base, options: options))
        : .text(plain: false)
    case .array(let element):
      let isCustom = element.kind != .base || element.name == "box"
      self =
        isCustom && !options.customPostgresTypes
        ? .text(plain: false) : .array(ValueConversion(element, options: options))
    case .composite(let attributes):
      self =
        options.customPostgresTypes
        ? .composite(
          attributes.map {
            Attribute(
              name: $0.name, conversion: ValueConversion($0.type, options: options))
          }) : .text(plain: false)
    case .range(let subtype):
      self =
        options.customPostgresTypes
        ? .range(ValueConversion(subtype, options: options)) : .text(plain: false)
    case .multirange(let subtype):
      self =
        options.customPostgresTypes
        ? .multirange(ValueConversion(subtype, options: options)) : .text(plain: false)
    case .base:
      self = Self.builtIn(type, format: DateTimeFormat(options))
    }
  }

  private static func builtIn(_ type: CatalogType, format: DateTimeFormat) -> ValueConversion {
    guard type.schema == "pg_catalog" else { return .text(plain: false) }
    switch type.name {
    case "bool": return .boolean
    case "int2", "int4", "int8", "oid": return .integer
    case "float4": return .real(single: true)
    case "float8": return .real(single: false)
    case "bytea": return .blob
    case "json": return .json(binary: false)
    case "jsonb": return .json(binary: true)
    case "bpchar": return .padded
    case "date": return .date
    case "time": return .time(format)
    case "timestamp": return .timestamp(format)
    case "timestamptz": return .instant(format)
    case "pg_lsn": return .lsn
    case "uuid", "numeric", "timetz", "interval", "inet", "cidr", "macaddr", "macaddr8":
      return .text(plain: true)
    default: return .text(plain: false)
    }
  }

  /// The storage class of the converted value.
  package var valueClass: ValueClass {
    switch self {
    case .boolean, .integer: .integer
    case .real: .real
    case .blob: .blob
    case .domain(_, _, let base): base.valueClass
    default: .text
    }
  }
}

extension ValueConversion.DateTimeFormat {
  fileprivate init(_ options: RuleOptions) {
    guard options.timestampsISO8601 else {
      self = .postgres
      return
    }
    switch options.timestampMaxPrecision {
    case .seconds: self = .iso(digits: 0)
    case .milliseconds: self = .iso(digits: 3)
    case .microseconds, .nanoseconds, nil: self = .iso(digits: 6)
    }
  }
}

/// What is known of a value's SQLite storage class before any row is seen.
package enum ValueClass: String, Codable, Sendable, Hashable {
  /// Always NULL.
  case null
  case integer
  case real
  case text
  case blob
  /// NULL, INTEGER, REAL or TEXT: known per value only.
  case dynamic

  /// The class of a value that is one or the other; nil when a blob would mix with another class.
  func joined(with other: ValueClass) -> ValueClass? {
    if self == other || other == .null { return self }
    if self == .null { return other }
    return self == .blob || other == .blob ? nil : .dynamic
  }
}
