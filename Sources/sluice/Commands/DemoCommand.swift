import Foundation
import ServiceRuntime

/// Shows Sluice at work on the field-service example, and leaves nothing behind.
enum DemoCommand: Subcommand {
  static let description = CommandDescription(
    name: "demo",
    summary: "Show Sluice at work on an example, in an empty database; Ctrl-C removes it all.",
    options: [
      .value("--database", "URL", "an empty database, such as postgresql:///sluice_demo"),
      .value("--listen", "HOST:PORT", "where the gateway listens (127.0.0.1:8686, or a free port)"),
      .flag("--once", "verify both replicas against PostgreSQL and end, instead of serving"),
    ])

  static func run(_ arguments: Arguments, _ console: Console) async throws -> ExitStatus {
    guard let database = arguments["--database"] else {
      throw UsageError(
        message: "--database is missing: name an empty one, made with `createdb sluice_demo`")
    }
    let demo = try Demo(database: database, listen: arguments["--listen"], console)
    let signals = ProcessSignals(ProcessSignals.termination)
    let result = await playing(demo, staysOpen: !arguments.has("--once"), until: signals)
    let log = demo.logTail
    // Here nothing is cancelled: what was made is taken away however the play ended.
    let cleared = await Swift.Result { try await demo.clear() }
    signals.restore()
    if case .failure = result, !log.isEmpty { console.error(log) }
    try result.get()
    try cleared.get()
    return .done
  }

  /// Plays until the end, a failure or a signal, which is as good an end as any.
  private static func playing(
    _ demo: Demo, staysOpen: Bool, until signals: ProcessSignals
  ) async -> Swift.Result<Void, any Error> {
    await withTaskGroup(of: Swift.Result<Void, any Error>.self) { group in
      group.addTask { await Swift.Result { try await demo.play(staysOpen: staysOpen) } }
      group.addTask {
        for await _ in signals.numbers { break }
        return .success(())
      }
      let first = await group.next() ?? .success(())
      group.cancelAll()
      return first
    }
  }
}

extension Result where Failure == any Error {
  /// What `body` gives or throws.
  fileprivate init(_ body: () async throws -> Success) async {
    do {
      self = .success(try await body())
    } catch {
      self = .failure(error)
    }
  }
}
