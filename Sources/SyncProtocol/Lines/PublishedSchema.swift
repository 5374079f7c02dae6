/// The tables a replica has, as the gateway publishes them. The `id` column goes without saying.
public struct PublishedSchema: Sendable, Equatable {
  /// Changes whenever the tables do.
  public let hash: String
  public let tables: [PublishedTable]

  public init(hash: String, tables: [PublishedTable]) {
    self.hash = hash
    self.tables = tables
  }

  /// A schema whose hash is computed from its tables, in the order given.
  public init(tables: [PublishedTable]) {
    var writer = JSONWriter()
    PublishedSchema.encode(tables, to: &writer)
    // FNV-1a over the tables' JSON: this notices changes, it does not defend against anyone.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in writer.take() { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let digits = String(hash, radix: 16)
    self.init(hash: String(repeating: "0", count: 16 - digits.count) + digits, tables: tables)
  }
}

/// One table of a replica.
public struct PublishedTable: Sendable, Equatable {
  public let name: String
  public let columns: [PublishedColumn]

  public init(name: String, columns: [PublishedColumn]) {
    self.name = name
    self.columns = columns
  }
}

/// One column of a replica's table.
public struct PublishedColumn: Sendable, Equatable {
  /// What a column's values are stored as.
  public enum Kind: String, Sendable, Equatable {
    case text, integer, real, any
  }

  public let name: String
  public let type: Kind

  public init(name: String, type: Kind) {
    self.name = name
    self.type = type
  }
}

extension PublishedSchema {
  /// Appends `{"hash":…,"tables":[…]}`, the answer of `GET /v1/schema`.
  package func encode(to writer: inout JSONWriter) {
    writer.append(literal: "{\"hash\":")
    writer.append(string: hash)
    writer.append(literal: ",\"tables\":")
    PublishedSchema.encode(tables, to: &writer)
    writer.append(UInt8(ascii: "}"))
  }

  /// The line `{"schema":…}`.
  package func encodedLine() -> [UInt8] {
    var writer = JSONWriter(reserving: 1024)
    writer.append(literal: "{\"schema\":")
    encode(to: &writer)
    writer.append(literal: "}\n")
    return writer.take()
  }

  private static func encode(_ tables: [PublishedTable], to writer: inout JSONWriter) {
    writer.append(UInt8(ascii: "["))
    for (index, table) in tables.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      writer.append(literal: "{\"name\":")
      writer.append(string: table.name)
      writer.append(literal: ",\"columns\":[")
      for (index, column) in table.columns.enumerated() {
        if index > 0 { writer.append(UInt8(ascii: ",")) }
        writer.append(literal: "{\"name\":")
        writer.append(string: column.name)
        writer.append(literal: ",\"type\":")
        writer.append(string: column.type.rawValue)
        writer.append(UInt8(ascii: "}"))
      }
      writer.append(literal: "]}")
    }
    writer.append(UInt8(ascii: "]"))
  }

  /// Reads what `encode(to:)` writes.
  package init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var hash: String?
    var tables: [PublishedTable]?
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "hash": hash = try cursor.readString().string
      case "tables":
        var read: [PublishedTable] = []
        try cursor.readArray { (cursor) throws(ProtocolError) in
          read.append(try PublishedTable(reading: &cursor))
        }
        tables = read
      default: try cursor.skipValue()
      }
    }
    self.init(
      hash: try cursor.require(hash, "schema.hash"),
      tables: try cursor.require(tables, "schema.tables"))
  }
}

extension PublishedTable {
  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var name: String?
    var columns: [PublishedColumn] = []
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "name": name = try cursor.readString().string
      case "columns":
        try cursor.readArray { (cursor) throws(ProtocolError) in
          columns.append(try PublishedColumn(reading: &cursor))
        }
      default: try cursor.skipValue()
      }
    }
    self.init(name: try cursor.require(name, "schema.tables.name"), columns: columns)
  }
}

extension PublishedColumn {
  init(reading cursor: inout JSONCursor) throws(ProtocolError) {
    var name: String?
    var type: String?
    try cursor.readObject { (key, cursor) throws(ProtocolError) in
      switch key {
      case "name": name = try cursor.readString().string
      case "type": type = try cursor.readString().string
      default: try cursor.skipValue()
      }
    }
    // A type that this version does not know is stored as it comes.
    self.init(
      name: try cursor.require(name, "schema.tables.columns.name"),
      type: Kind(rawValue: try cursor.require(type, "schema.tables.columns.type")) ?? .any)
  }
}
