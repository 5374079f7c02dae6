/// The functions in schema `sluice` that compiled SQL calls.
///
/// Values whose SQLite class is known only at run time travel as a `jsonb` scalar: TEXT as a
/// string, INTEGER as a number without a fraction, REAL as a number with at least one digit after
/// the point, NULL as SQL NULL. A function that catches errors is `PARALLEL UNSAFE`, because
/// PostgreSQL allows no subtransaction in a parallel query.
package enum HelperFunctions {
  /// Rises with every change of a function's meaning or signature.
  package static let version = 1

  /// `CREATE OR REPLACE FUNCTION` statements, to be run after `CREATE SCHEMA sluice`.
  package static var sql: String {
    ([numbers, dynamicValues, text, json, requests, time, types]).joined(separator: "\n")
  }
}
