extension RulesReader {
  private static let switches = [
    "timestamps_iso8601", "versioned_bucket_ids", "fixed_json_extract", "custom_postgres_types",
    "unstable_sqlite_expression_engine",
  ]
  private static let configKeys =
    ["edition"] + switches + ["timestamp_max_precision", "storage_version"]

  /// The edition, and the options that follow from it and from the `config` mapping.
  mutating func config(_ root: YAMLMapping) -> (edition: Int, options: RuleOptions) {
    guard let node = root["config"],
      let config = yaml.mapping(node, "'config'", keys: Self.configKeys)
    else { return (1, .defaults(edition: 1)) }
    let edition = edition(config, root)
    var options = RuleOptions.defaults(edition: edition)
    options.timestampsISO8601 =
      option("timestamps_iso8601", config) ?? options.timestampsISO8601
    options.versionedBucketIDs =
      option("versioned_bucket_ids", config) ?? options.versionedBucketIDs
    options.fixedJSONExtract = option("fixed_json_extract", config) ?? options.fixedJSONExtract
    options.customPostgresTypes =
      option("custom_postgres_types", config) ?? options.customPostgresTypes
    options.timestampMaxPrecision = precision(config, options)
    checkStorage(config)
    checkEngine(config)
    return (edition, options)
  }

  /// The edition; if the file states none that exists, the one its sections suggest.
  private mutating func edition(_ config: YAMLMapping, _ root: YAMLMapping) -> Int {
    guard let node = config["edition"] else { return 1 }
    let stated = yaml.integer(node, "'edition'", in: 1...3, code: .badEdition)
    return stated ?? (root["bucket_definitions"] == nil ? 3 : 2)
  }

  private mutating func option(_ key: String, _ config: YAMLMapping) -> Bool? {
    guard let node = config[key] else { return nil }
    return yaml.boolean(node, "'\(key)'", code: .badOption)
  }

  private mutating func precision(
    _ config: YAMLMapping, _ options: RuleOptions
  ) -> RuleOptions.TimestampPrecision? {
    guard let entry = config.entry("timestamp_max_precision") else { return nil }
    let names = RuleOptions.TimestampPrecision.allCases.map(\.rawValue)
    guard case .scalar(let scalar) = entry.value.kind,
      let precision = RuleOptions.TimestampPrecision(rawValue: scalar.text)
    else {
      refuse(
        .badOption, "'timestamp_max_precision' must be one of \(names.joined(separator: ", "))",
        at: entry.value.span)
      return nil
    }
    guard options.timestampsISO8601 else {
      refuse(
        .badOption, "'timestamp_max_precision' needs 'timestamps_iso8601'",
        remedy: "add 'timestamps_iso8601: true', or set 'edition: 2'", at: entry.keySpan)
      return nil
    }
    return precision
  }

  /// The storage version is the other service's own; Sluice reads it and has no use for it.
  private mutating func checkStorage(_ config: YAMLMapping) {
    guard let node = config["storage_version"] else { return }
    switch yaml.integer(node, "'storage_version'", in: 2...3, code: .badOption) {
    case 3:
      warn(
        .warnStorage, "'storage_version: 3' is unstable, and without effect in Sluice",
        remedy: "remove the key", at: node.span)
    default: break
    }
  }

  private mutating func checkEngine(_ config: YAMLMapping) {
    let key = "unstable_sqlite_expression_engine"
    guard let entry = config.entry(key), option(key, config) == true else { return }
    refuse(
      .badOption, "'\(key)' is not available: expressions are evaluated by PostgreSQL",
      remedy: "remove the key", at: entry.keySpan)
  }
}
