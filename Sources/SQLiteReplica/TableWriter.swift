import SyncProtocol

/// Writes rows of one table of the application from JSON objects.
final class TableWriter {
  private struct Column {
    let name: [UInt8]
    let kind: PublishedColumn.Kind
  }

  private let columns: [Column]
  private let positions: [[UInt8]: Int]
  private let upsertStatement: SQLiteStatement
  private let deleteStatement: SQLiteStatement
  private let selectStatement: SQLiteStatement
  private var scratch: [UInt8] = []

  /// Writes to the table that has this name in the database.
  init(_ table: PublishedTable, named storedName: String, on connection: SQLiteConnection) throws {
    let published = table.replicaColumns
    columns = published.map { Column(name: Array($0.name.utf8), kind: $0.type) }
    var positions: [[UInt8]: Int] = [:]
    for (index, column) in columns.enumerated() { positions[column.name] = index }
    self.positions = positions

    let name = quoted(storedName)
    let names = published.map { quoted($0.name) }
    let places = (0...columns.count).map { "?\($0 + 1)" }.joined(separator: ", ")
    let action =
      names.isEmpty
      ? "NOTHING"
      : "UPDATE SET " + names.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    let all = (["id"] + names).joined(separator: ", ")
    upsertStatement = try connection.prepare(
      "INSERT INTO \(name) (\(all)) VALUES (\(places)) ON CONFLICT (id) DO \(action)")
    deleteStatement = try connection.prepare("DELETE FROM \(name) WHERE id = ?1")
    selectStatement = try connection.prepare("SELECT \(all) FROM \(name) WHERE id = ?1")
  }

  /// Makes the row with this id hold exactly `data`, a JSON object. Keys that are no columns are passed over.
  func upsert(_ id: UnsafeBufferPointer<UInt8>, _ data: UnsafeBufferPointer<UInt8>) throws {
    upsertStatement.clearBindings()
    upsertStatement.bind(text: id, at: 1)
    try bindColumns(data)
    try upsertStatement.run()
  }

  func delete(_ id: UnsafeBufferPointer<UInt8>) throws {
    deleteStatement.bind(text: id, at: 1)
    try deleteStatement.run()
  }

  /// The row as a JSON object that `upsert` would store as it is stored now; nil if there is no such row.
  func serialized(_ id: UnsafeBufferPointer<UInt8>) throws -> [UInt8]? {
    selectStatement.bind(text: id, at: 1)
    guard try selectStatement.step() else { return nil }
    defer { selectStatement.reset() }
    var writer = JSONWriter(reserving: 256)
    writer.append(UInt8(ascii: "{"))
    for (index, column) in columns.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      column.name.withUnsafeBytes { writer.append(string: $0) }
      writer.append(UInt8(ascii: ":"))
      switch selectStatement.value(Int32(index + 1)) {
      case .integer(let value): writer.append(value)
      case .real(let value):
        writer.append(json: value.isFinite ? value.description : value < 0 ? "-1e999" : "1e999")
      case .text(let value): writer.append(string: value)
      case .null, .blob: writer.append(literal: "null")
      }
    }
    writer.append(UInt8(ascii: "}"))
    return writer.take()
  }

  private func bindColumns(_ data: UnsafeBufferPointer<UInt8>) throws {
    var cursor = JSONCursor(data, direction: .line)
    try cursor.expect(UInt8(ascii: "{"))
    var first = true
    var expected = 0
    while try cursor.nextElement(first: &first, close: UInt8(ascii: "}")) {
      let key = try cursor.readString()
      try cursor.expect(UInt8(ascii: ":"))
      guard let index = column(key, expected: expected) else {
        try cursor.skipValue()
        continue
      }
      expected = index + 1
      try bind(try cursor.readValue(), to: index)
    }
  }

  /// Keys mostly come in the order of the columns, so the one that is due is tried first.
  @inline(__always)
  private func column(_ key: JSONTextView, expected: Int) -> Int? {
    if expected < columns.count, !key.hasEscapes, equal(key.raw, columns[expected].name) {
      return expected
    }
    if key.hasEscapes {
      var resolved: [UInt8] = []
      key.appendResolved(to: &resolved)
      return positions[resolved]
    }
    return positions[Array(key.raw)]
  }

  @inline(__always)
  private func bind(_ value: JSONValueView, to column: Int) throws {
    let place = Int32(column + 2)
    switch value {
    case .null: upsertStatement.bindNull(at: place)
    case .boolean(let value): upsertStatement.bind(value ? 1 : 0 as Int64, at: place)
    case .text(let text):
      guard text.hasEscapes else {
        upsertStatement.bind(text: text.raw, at: place)
        return
      }
      scratch.removeAll(keepingCapacity: true)
      text.appendResolved(to: &scratch)
      scratch.withUnsafeBufferPointer { upsertStatement.bind(copyOf: $0, at: place) }
    case .container(let text): upsertStatement.bind(text: text, at: place)
    case .number(let number):
      if columns[column].kind == .text {
        // As it was written, without a detour over a double.
        upsertStatement.bind(text: number.raw, at: place)
      } else if let integer = number.int64 {
        upsertStatement.bind(integer, at: place)
      } else {
        upsertStatement.bind(number.double, at: place)
      }
    }
  }
}

extension PublishedTable {
  /// The columns besides `id`.
  var replicaColumns: [PublishedColumn] { columns.filter { $0.name != "id" } }
}
