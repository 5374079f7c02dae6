/// A name in SQL text: always in double quotes, with quotes inside doubled.
///
/// This is the only place of the project that quotes an identifier.
package struct SQLIdentifier: Hashable, Sendable, CustomStringConvertible {
  private let parts: [String]

  /// `"name"`
  package init(_ name: String) {
    parts = [name]
  }

  /// `"schema"."name"`
  package init(schema: String, name: String) {
    parts = [schema, name]
  }

  /// This name as the qualifier of another: `"s"."id"`.
  package func member(_ name: String) -> SQLIdentifier {
    SQLIdentifier(parts: parts + [name])
  }

  private init(parts: [String]) {
    self.parts = parts
  }

  package var description: String {
    parts.map { part in
      var quoted = "\""
      for scalar in part.unicodeScalars where scalar != "\0" {
        quoted.unicodeScalars.append(scalar)
        if scalar == "\"" { quoted += "\"" }
      }
      return quoted + "\""
    }.joined(separator: ".")
  }
}

/// A text constant in SQL text, safe whatever `standard_conforming_strings` says.
///
/// Constants come from rule files only. What a request brings is always bound.
package struct SQLLiteral: Hashable, Sendable, CustomStringConvertible {
  private let text: String

  package init(_ text: String) {
    self.text = text
  }

  package var description: String {
    var body = ""
    var escaped = false
    for scalar in text.unicodeScalars where scalar != "\0" {
      if scalar == "'" { body += "'" }
      if scalar == "\\" {
        escaped = true
        body += "\\"
      }
      body.unicodeScalars.append(scalar)
    }
    return (escaped ? "E'" : "'") + body + "'"
  }
}
