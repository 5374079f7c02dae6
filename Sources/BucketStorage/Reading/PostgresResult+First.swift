internal import Postgres

/// The first row of a result that may have none.
extension PostgresResult {
  func firstInt(_ column: Int) -> Int64? { rowCount > 0 ? int(0, column) : nil }
  func firstString(_ column: Int) -> String? { rowCount > 0 ? string(0, column) : nil }
  func firstBool(_ column: Int) -> Bool? { rowCount > 0 ? bool(0, column) : nil }
}
