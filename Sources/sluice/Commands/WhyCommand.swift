import BucketStorage
import Postgres
import SQLGeneration
import SyncProtocol
import SyncRules
import SyncService

/// Tells why a row is, or is not, in somebody's replica; or in whose it is.
enum WhyCommand: Subcommand {
  static let description = CommandDescription(
    name: "why",
    summary: "Tell why a user has a row or lacks it; without a user, who may hold it.",
    options: [
      .value(
        "--row", "TABLE/ID",
        "the source row: its table, and its primary key; several key columns are parted by commas"),
      .config, .database, .format,
    ] + RequestArguments.options)

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    guard let name = arguments["--row"] else { throw UsageError(message: "--row is missing") }
    let request = try RequestArguments.read(arguments)
    let access = try DatabaseAccess(arguments)
    let catalog = try await access.catalog()
    let report = try await access.withConnection(RowTracer.settings) { connection in
      guard let text = try await RulesInForce.text(connection) else {
        throw CommandFailure(
          .unavailable, "no rules are in force in this database", hint: "Run `sluice deploy`.")
      }
      let pipeline = RulesPipeline.run(text: text, name: "the rules in force", catalog: catalog)
      let rules = try pipeline.requireCompiled(console)
      guard let plan = pipeline.plan else { throw CommandFailure(.failed, "no plan") }
      let row = try RowName(name, in: plan)
      return try await trace(row, RowTracer(plan: plan, rules: rules), request, connection)
    }
    if arguments.wantsJSON {
      try console.print(json: report)
    } else {
      console.print(RowExplanation(report, user: request == nil ? nil : arguments["--user"]).text)
    }
    return report.exists && (request == nil || report.isHeld) ? .done : .failed
  }

  private static func trace(
    _ row: RowName, _ tracer: RowTracer, _ request: ViewRequest?, _ connection: PostgresConnection
  ) async throws -> RowReport {
    let context = request.map {
      RequestContext(
        claimsJSON: $0.claimsJSON, parametersJSON: $0.parametersJSON,
        subscriptionsJSON: StreamSubscription.json($0.subscriptions),
        includeDefaults: $0.includeDefaults)
    }
    do {
      return try await tracer.trace(table: row.table, key: row.key, for: context, connection)
    } catch let error as PostgresError where error.code.hasPrefix("22") {
      throw CommandFailure(
        .wrongUsage, "\(row.key.joined(separator: ",")) is no key of \(row.tableName)",
        hint: "Its key is \(row.keyText). \(error.message)")
    }
  }
}

/// A source row as it is named on the command line.
struct RowName {
  /// Index into the plan's sources.
  var table: Int
  var tableName: String
  /// The texts of the key's columns.
  var key: [String]
  /// The key's columns and their types.
  var keyText: String

  /// Reads `TABLE/ID`; the table with or without its schema, or by the name that a query gives it.
  init(_ text: String, in plan: SyncPlan) throws(CommandFailure) {
    guard let slash = text.firstIndex(of: "/") else {
      throw CommandFailure(
        .wrongUsage, "\(text) names no row", hint: "Write TABLE/ID, such as work_orders/42.")
    }
    let name = String(text[..<slash])
    let id = String(text[text.index(after: slash)...])
    let tables = plan.sources.indices.filter { index in
      let source = plan.sources[index]
      return source.name == name || "\(source.schema).\(source.name)" == name
    }
    let outputs = plan.definitions.flatMap(\.queries).filter { $0.outputName == name }
      .map(\.source)
    let found = tables.isEmpty ? Array(Set(outputs)) : tables
    guard let table = found.first else {
      let names = plan.sources.map(\.name)
      let guess = Suggestion.nearest(to: name, among: names).map { " Did you mean \($0)?" } ?? ""
      throw CommandFailure(
        .wrongUsage, "the rules in force read no table \(name)",
        hint: "They read \(names.joined(separator: ", ")).\(guess)")
    }
    guard found.count == 1 else {
      let names = found.map { "\(plan.sources[$0].schema).\(plan.sources[$0].name)" }.sorted()
      throw CommandFailure(
        .wrongUsage, "\(name) is more than one table",
        hint: "Name one of \(names.joined(separator: ", ")).")
    }
    let source = plan.sources[table]
    self.table = table
    tableName = source.name
    keyText = source.key.map { "\($0.name) \($0.typeName)" }.joined(separator: ", ")
    key =
      source.key.count == 1
      ? [id] : id.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard key.count == source.key.count else {
      throw CommandFailure(
        .wrongUsage, "the key of \(name) has \(source.key.count) columns: \(keyText)",
        hint: "Give their values parted by commas.")
    }
  }
}
