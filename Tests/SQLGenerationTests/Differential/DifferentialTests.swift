import Foundation
import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// The SQL that random expressions compile to, beside an evaluator of what the reference states.
@Suite struct DifferentialTests {
  @Test(
    "random expressions over random rows have the values that the reference states",
    arguments: [2, 3])
  func expressions(edition: Int) async throws {
    let random = SeededGenerator()
    var generator = ExpressionGenerator(random: random, edition3: edition == 3)
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      var compared = 0
      for _ in 0..<8 {
        let rows = (0..<15).map { _ in generator.row() }
        try await fill(rows, connection)
        let expressions = (0..<40).map { _ in generator.expression(depth: 3) }
        let rules = try await compile(expressions, edition: edition, connection)
        for (index, expression) in expressions.enumerated() {
          compared += try await compare(
            expression, rows, rules.definitions[2 * index], rules.definitions[2 * index + 1],
            edition3: edition == 3, connection, seed: random.seed)
        }
      }
      // Most outcomes can be told; if not, the test would be worth little.
      #expect(compared > 4_000, "seed \(random.seed)")
    }
  }

  private func fill(
    _ rows: [[String: ReferenceValue]], _ connection: PostgresConnection
  ) async throws {
    let columns = ExpressionGenerator.columns
    let list = columns.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    try await connection.execute(
      "DROP TABLE IF EXISTS public.t; CREATE TABLE public.t (id int PRIMARY KEY, \(list))")
    for (number, row) in rows.enumerated() {
      let values = columns.map { name, type in literal(row[name] ?? .null, type) }
      try await connection.execute(
        "INSERT INTO public.t VALUES (\(number), \(values.joined(separator: ", ")))")
    }
  }

  private func literal(_ value: ReferenceValue, _ type: String) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let value): type == "boolean" ? (value == 1 ? "true" : "false") : "\(value)"
    case .real(let value): "'\(value)'"
    case .text(let text): SQLLiteral(text).description
    case .blob(let bytes): "decode('\(bytes.map { String(format: "%02x", $0) }.joined())', 'hex')"
    }
  }

  /// For each expression a definition that shows it, and one that has it as its condition.
  private func compile(
    _ expressions: [ReferenceExpression], edition: Int, _ connection: PostgresConnection
  ) async throws -> CompiledRules {
    var yaml = "config:\n  edition: \(edition)\n"
    yaml += edition == 3 ? "streams:\n" : "bucket_definitions:\n"
    for (index, expression) in expressions.enumerated() {
      for (name, query) in [
        ("shown\(index)", "SELECT id, \(expression.text) AS x FROM t"),
        ("kept\(index)", "SELECT id FROM t WHERE \(expression.text)"),
      ] {
        yaml +=
          edition == 3
          ? "  \(name):\n    auto_subscribe: true\n    query: |\n      \(query)\n"
          : "  \(name):\n    data:\n      - |\n        \(query)\n"
      }
    }
    let columns = [("id", "int4")] + ExpressionGenerator.columns
    let catalog = Catalog(tables: [
      CatalogTable(
        schema: "public", name: "t",
        columns: columns.map { name, type in
          CatalogColumn(
            name: name, type: .builtIn(type == "boolean" ? "bool" : type), notNull: name == "id")
        }, key: ["id"])
    ])
    let (rules, read) = RulesReader.read(yaml, fileName: "rules.yaml")
    let (plan, found) = PlanCompiler.compile(try #require(rules), catalog)
    let errors = (read + found).filter { $0.severity == .error }
    let file = SourceFile(name: "rules.yaml", text: yaml)
    #expect(errors.isEmpty, "\(DiagnosticFormatter(file: file).text(errors))")
    return SQLGenerator.compile(try #require(plan))
  }

  /// The number of outcomes that could be compared.
  private func compare(
    _ expression: ReferenceExpression, _ rows: [[String: ReferenceValue]],
    _ shown: CompiledDefinition, _ kept: CompiledDefinition, edition3: Bool,
    _ connection: PostgresConnection, seed: UInt64
  ) async throws -> Int {
    let values = try await evaluated(shown, connection)
    let passed = try await evaluated(kept, connection)
    var compared = 0
    for (number, row) in rows.enumerated() {
      var outcome: ReferenceValue?
      do {
        let value = try expression.value(row, edition3: edition3)
        _ = try value.json()
        outcome = value
      } catch is ReferenceValue.Unmodelled {
        continue
      } catch is ReferenceValue.RowError {
        // The row contributes nothing.
      }
      compared += 1
      let json = try outcome?.json().map { #"{"id":\#(number),"x":\#($0)}"# }
      let expected = outcome.map { _ in json ?? "{\"id\":\(number)}" }
      #expect(values["\(number)"] == expected, "\(expression.text) of \(row), seed \(seed)")
      #expect(
        (passed["\(number)"] != nil) == (outcome?.isTrue ?? false),
        "whether \(expression.text) of \(row), seed \(seed)")
    }
    return compared
  }

  private func evaluated(
    _ definition: CompiledDefinition, _ connection: PostgresConnection
  ) async throws -> [String: String] {
    var rows: [String: String] = [:]
    for query in definition.queries {
      let result = try await connection.query(query.evaluationAll())
      for row in 0..<result.rowCount {
        rows[result.string(row, 2) ?? ""] = result.string(row, 3)
      }
    }
    return rows
  }
}
