/// One word after `sluice`.
protocol Subcommand: Sendable {
  static var description: CommandDescription { get }
  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus
}
