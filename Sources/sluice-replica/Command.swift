import SQLiteReplica
import SluiceClient

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// `sluice-replica`: a replica in a file, kept by hand or by a script.
@main
struct Command {
  static func main() async {
    exit(await run(Array(CommandLine.arguments.dropFirst())))
  }

  /// Exit codes: 0 done, 1 what was asked for failed, 2 wrong usage, 3 the gateway or the database cannot be used.
  private static func run(_ arguments: [String]) async -> Int32 {
    do {
      let arguments = try Arguments(parsing: arguments)
      if arguments.wantsHelp {
        Terminal.write(Arguments.help)
        return 0
      }
      switch arguments.verb {
      case .sync: try await SyncCommand(arguments).run()
      case .watch: try await WatchCommand(arguments).run()
      case .status: try await StatusCommand(arguments).run()
      case .sql(let text): try await SQLCommand(arguments, text).run()
      }
      return 0
    } catch let error as UsageError {
      Terminal.writeError("sluice-replica: \(error.message)\nTry: sluice-replica --help")
      return 2
    } catch is CancellationError {
      return 0
    } catch let failure as SyncFailure {
      Terminal.writeError("sluice-replica: \(failure)" + (failure.hint.map { "\n\($0)" } ?? ""))
      return failure.kind == .replica ? 1 : 3
    } catch let error as ReplicaError {
      Terminal.writeError("sluice-replica: \(error)")
      return error.code == "SLUICE_REPLICA_OPEN" ? 3 : 1
    } catch {
      Terminal.writeError("sluice-replica: \(error)")
      return 1
    }
  }
}
