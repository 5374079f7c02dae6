import SQLGeneration
import SyncProtocol
import SyncService

/// What compiled rules do, for people and for programs.
struct Explanation: Encodable {
  struct Bucket: Encodable {
    var name: String
    var priority: Int
    var count: Int64
    /// The places of the subscriptions that lead to it.
    var subscriptions: [Int]
  }

  /// Why a subscription gives nothing, or not everything.
  struct Trouble: Encodable {
    var stream: String
    var subscription: Int?
    var code: String
    var message: String
  }

  struct Query: Encodable {
    var table: String
    var output: String?
    var sql: String
  }

  struct Definition: Encodable {
    var name: String
    /// The stream that it is a part of; nil for a bucket definition.
    var stream: String?
    /// Whether clients have the stream without asking.
    var isDefault: Bool?
    var priority: Int
    var queries: [Query]
    var lookups: [Query]
    var grants: [String]
  }

  struct Table: Encodable {
    var name: String
    var columns: [String]
  }

  var definitions: [Definition]
  var schema: [Table]
  /// What the claims that were given hold by the rules in force; nil when none were given.
  var buckets: [Bucket]?
  var troubles: [Trouble]?

  init(_ rules: CompiledRules, held: StreamView?) {
    buckets = held?.buckets.map {
      Bucket(
        name: $0.name.text, priority: $0.priority, count: $0.count, subscriptions: $0.subscriptions)
    }
    troubles = held?.streams.flatMap { stream in
      stream.errors.map {
        Trouble(
          stream: stream.name, subscription: $0.subscription, code: $0.code, message: $0.message)
      }
    }
    definitions = rules.definitions.map { definition in
      Definition(
        name: definition.name, stream: definition.stream?.name,
        isDefault: definition.stream?.isDefault, priority: definition.priority,
        queries: definition.queries.map {
          Query(
            table: "\($0.source.schema).\($0.source.name)", output: $0.outputName,
            sql: $0.evaluation(dirty: "dirty"))
        },
        lookups: definition.lookups.map {
          Query(
            table: "\($0.source.schema).\($0.source.name)", output: nil,
            sql: $0.evaluation(dirty: "dirty"))
        },
        grants: definition.grants.map { $0.sql { Int64($0) } })
    }
    schema = rules.schema.map { table in
      Table(name: table.name, columns: table.columns.map { "\($0.name) \($0.type)" })
    }
  }

  var text: String {
    var lines: [String] = []
    for definition in definitions {
      lines.append("\(definition.name) (\(definition.streamText)priority \(definition.priority))")
      for grant in definition.grants { lines += ["  who:"] + indented(grant) }
      for lookup in definition.lookups {
        lines += ["  looked up in \(lookup.table):"] + indented(lookup.sql)
      }
      for query in definition.queries {
        lines += ["  \(query.output ?? "") from \(query.table):"] + indented(query.sql)
      }
      lines.append("")
    }
    lines.append("tables of the replicas")
    for table in schema {
      lines.append("  \(table.name)(\((["id text"] + table.columns).joined(separator: ", ")))")
    }
    if let buckets {
      lines += ["", "buckets of these claims, by the rules in force"]
      if buckets.isEmpty { lines.append("  none") }
      for bucket in buckets {
        let places = bucket.subscriptions.map { "\($0 + 1)" }.joined(separator: ", ")
        lines.append(
          "  \(bucket.name)  priority \(bucket.priority)  \(bucket.count) rows"
            + (places.isEmpty ? "" : "  by subscription \(places)"))
      }
    }
    for trouble in troubles ?? [] {
      let place = trouble.subscription.map { "subscription \($0 + 1)" } ?? "without asking"
      lines.append("  \(trouble.stream), \(place): \(trouble.code): \(trouble.message)")
    }
    return lines.joined(separator: "\n")
  }

  private func indented(_ sql: String) -> [String] {
    sql.split(separator: "\n").map { "    " + $0 }
  }
}

extension Explanation.Definition {
  fileprivate var streamText: String {
    guard let stream else { return "" }
    return "stream \(stream), \(isDefault == true ? "without asking" : "by subscription"), "
  }
}
