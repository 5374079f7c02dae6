/// The `config` options that change what values look like, after the edition's defaults.
package struct RuleOptions: Sendable, Hashable, Codable {
  package enum TimestampPrecision: String, Sendable, Hashable, Codable, CaseIterable {
    case seconds
    case milliseconds
    case microseconds
    case nanoseconds
  }

  /// Date-time text has a `T` and a fraction of fixed width.
  package var timestampsISO8601: Bool
  /// Accepted for compatibility; Sluice replaces a changed definition's buckets on its own.
  package var versionedBucketIDs: Bool
  /// JSON paths without `$` are one key, and JSON null becomes NULL.
  package var fixedJSONExtract: Bool
  /// Domains, composites, ranges and arrays of custom types are structured values.
  package var customPostgresTypes: Bool
  /// Truncates fractions of a second.
  package var timestampMaxPrecision: TimestampPrecision?

  package init(
    timestampsISO8601: Bool, versionedBucketIDs: Bool, fixedJSONExtract: Bool,
    customPostgresTypes: Bool, timestampMaxPrecision: TimestampPrecision?
  ) {
    self.timestampsISO8601 = timestampsISO8601
    self.versionedBucketIDs = versionedBucketIDs
    self.fixedJSONExtract = fixedJSONExtract
    self.customPostgresTypes = customPostgresTypes
    self.timestampMaxPrecision = timestampMaxPrecision
  }

  /// What an edition gives a file that sets no option.
  package static func defaults(edition: Int) -> RuleOptions {
    let isCurrent = edition >= 2
    return RuleOptions(
      timestampsISO8601: isCurrent, versionedBucketIDs: isCurrent, fixedJSONExtract: isCurrent,
      customPostgresTypes: isCurrent, timestampMaxPrecision: nil)
  }
}
