import SQLiteReplica
import SyncProtocol

/// `sql`: one statement that reads, its rows tab-separated or as JSON objects.
struct SQLCommand {
  private let arguments: Arguments
  private let text: String

  init(_ arguments: Arguments, _ text: String) {
    self.arguments = arguments
    self.text = text
  }

  func run() async throws {
    let reader = try await ReplicaReader.open(path: try arguments.database())
    let result = try await reader.query(text)
    switch arguments.format {
    case .text:
      for row in result.rows {
        Terminal.writeLine(row.map { plain($0) }.joined(separator: "\t"))
      }
    case .json: Terminal.write(json(result))
    }
  }

  /// A value without tabs and line ends of its own; NULL is empty.
  private func plain(_ value: SQLiteValue) -> String {
    switch value {
    case .null: ""
    case .integer(let value): String(value)
    case .real(let value): value.description
    case .text(let value):
      value.reduce(into: "") { text, letter in
        switch letter {
        case "\t": text += "\\t"
        case "\n": text += "\\n"
        case "\r", "\r\n": text += letter == "\r" ? "\\r" : "\\r\\n"
        case "\\": text += "\\\\"
        default: text.append(letter)
        }
      }
    case .blob(let bytes): hexadecimal(bytes)
    }
  }

  private func json(_ result: QueryResult) -> String {
    var writer = JSONWriter()
    writer.append(literal: "[")
    for (index, row) in result.rows.enumerated() {
      writer.append(literal: "\n")
      if index > 0 { writer.append(literal: ",") }
      writer.append(literal: "{")
      for (index, column) in result.columns.enumerated() {
        if index > 0 { writer.append(literal: ",") }
        writer.append(string: column)
        writer.append(literal: ":")
        switch row[index] {
        case .null: writer.append(literal: "null")
        case .integer(let value): writer.append(value)
        case .real(let value):
          writer.append(json: value.isFinite ? value.description : "null")
        case .text(let value): writer.append(string: value)
        case .blob(let bytes): writer.append(string: hexadecimal(bytes))
        }
      }
      writer.append(literal: "}")
    }
    writer.append(literal: "\n]\n")
    return String(decoding: writer.take(), as: UTF8.self)
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
