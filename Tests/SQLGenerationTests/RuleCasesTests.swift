import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// The published cases for bucket definitions: rows, bucket names, wire text, granted buckets.
@Suite struct RuleCasesTests {
  /// Cases that differ by decision.
  static let skipped: [String: String] = [:]

  /// Rows that differ by decision: case and index.
  static let skippedRows: [String: Set<Int>] = [:]

  @Test func `published bucket definitions give the published rows and buckets`() async throws {
    let cases = try CaseValue.file("rules.json")["cases"]?.elements.map(RuleCase.init) ?? []
    let chosen = cases.filter {
      $0.topic == "bucket_definitions" && Self.skipped[$0.id] == nil
    }
    #expect(chosen.count == 30 - Self.skipped.count)
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      for ruleCase in chosen {
        do {
          try await ruleCase.check(
            connection, skippingRows: Self.skippedRows[ruleCase.id] ?? [])
        } catch let error as PostgresError {
          Issue.record("\(ruleCase.id): \(error.message)")
        }
      }
    }
  }
}
