import SQLiteReplica
import SluiceClient
import SyncProtocol

extension Arguments {
  /// The replica and the client that the options name.
  func connect() async throws -> SyncClient {
    let url = try url()
    let path = try database()
    let token = try tokenSource()
    var options = SyncClient.Options()
    options.parameters = parameters
    options.includesDefaults = includesDefaults
    // What is wrong with the command line shows before a database is made.
    _ = try token()
    let replica = try await Replica.open(path: path)
    let client = try SyncClient(url: url, replica: replica, options: options) { try token() }
    for subscription in subscriptions { _ = client.subscribe(subscription) }
    return client
  }
}

/// Runs `body` beside `observing`, which ends with it. False if a signal ended it first.
func run(
  _ body: @escaping @Sendable () async throws -> Void,
  observing: @escaping @Sendable () async -> Void
) async throws -> Bool {
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask { await observing() }
    defer { group.cancelAll() }
    return try await withThrowingTaskGroup(of: Bool.self) { work in
      work.addTask {
        try await body()
        return true
      }
      work.addTask {
        await Signals.wait()
        return false
      }
      defer { work.cancelAll() }
      return try await work.next() ?? false
    }
  }
}
