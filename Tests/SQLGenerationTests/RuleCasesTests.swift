import Postgres
import SQLGeneration
import SyncRules
import TestSupport
import Testing

/// The published cases: rows, buckets, wire text, what requests are granted.
@Suite struct RuleCasesTests {
  /// Rows that differ by decision: case, row, reason.
  static let skipped: [(id: String, row: Int, reason: String)] = [
    (
      "bd-functions", 4,
      "substring() through the middle of a surrogate pair: PostgreSQL has no text for half of one"
    ),
    (
      "bd-conflict-eq", 1,
      "a parameter matched with two columns needs both to be equal; the reference takes the first"
    ),
  ]

  @Test func `published bucket definitions give the published rows and buckets`() async throws {
    let cases = try CaseValue.file("rules.json")["cases"]?.elements.map(RuleCase.init) ?? []
    let chosen = cases.filter { $0.topic == "bucket_definitions" }
    #expect(chosen.count == 30)
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      for ruleCase in chosen {
        do {
          let rows = Self.skipped.filter { $0.id == ruleCase.id }.map(\.row)
          try await ruleCase.check(connection, skippingRows: Set(rows))
        } catch let error as PostgresError {
          Issue.record("\(ruleCase.id): \(error.message)")
        }
      }
    }
  }

  /// Cases whose rows are divided among buckets in another way, by decision; who sees what is the same.
  static let otherBuckets: [String: String] = [
    "s3-inner-or": "branches that reach the same keys share their buckets"
  ]

  @Test func `published streams divide the rows and show them as published`() async throws {
    let cases = try CaseValue.file("rules.json")["cases"]?.elements.map(RuleCase.init) ?? []
    let chosen = cases.filter { $0.topic.hasPrefix("streams") }
    #expect(chosen.count == 36)
    try await withDatabase { database in
      let connection = try await database.connectForEvaluation()
      for ruleCase in chosen {
        do {
          try await ruleCase.check(
            connection, comparingBuckets: Self.otherBuckets[ruleCase.id] == nil)
        } catch let error as PostgresError {
          Issue.record("\(ruleCase.id): \(error.message)")
        }
      }
    }
  }
}
