import BucketStorage
import Foundation

/// Compares what is stored with what the rules give.
enum VerifyCommand: Subcommand {
  static let description = CommandDescription(
    name: "verify",
    summary: "Compare every bucket with the rules, evaluated anew on one snapshot.",
    options: [.config, .database, .format])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    let report = try await DatabaseAccess(arguments).withConnection(Verifier.settings) {
      try await Verifier().verify($0)
    }
    let summary = VerificationSummary(report)
    if arguments.wantsJSON {
      try console.print(json: summary)
    } else {
      console.print(summary.text)
    }
    return report.isSound ? .done : .failed
  }
}

/// What a verification found, for people and for programs.
struct VerificationSummary: Encodable {
  struct Difference: Encodable {
    var kind: String
    var definition: String
    var key: String
    var object: String
  }

  var tick: Int64?
  var differences: [Difference]
  var skipped: [String]
  var suspended: [String]

  init(_ report: VerificationReport) {
    tick = report.tick?.number
    differences = report.differences.map {
      Difference(
        kind: $0.kind.rawValue, definition: $0.definition, key: $0.key, object: $0.object)
    }
    skipped = report.skipped
    suspended = report.suspended
  }

  var text: String {
    var lines = differences.map { "\($0.kind): \($0.definition)\($0.key) \($0.object)" }
    lines += skipped.map { "not compared, since no tick has seen its rewriting yet: \($0)" }
    lines += suspended.map { "not compared, since it stands still (see `sluice status`): \($0)" }
    let place = tick.map { " at tick \($0)" } ?? ""
    lines.append(
      differences.isEmpty
        ? "what is stored equals the rules\(place)" : "\(differences.count) differences\(place)")
    return lines.joined(separator: "\n")
  }
}
