internal import BucketStorage
package import EventLoop
package import Postgres
package import ServiceRuntime

/// Hears of ticks from the sequencer, wherever it runs, and wakes the live feed.
///
/// When the connection is lost the feed still polls; this connects again.
package struct TickListener: Service {
  /// The channel that the sequencer notifies.
  static let channel = "sluice"

  package let name = "tick-listener"
  private let configuration: PostgresConfiguration
  private let loop: EventLoop
  private let feed: LiveFeed
  private let observer: any Observer

  package init(
    configuration: PostgresConfiguration, loop: EventLoop, feed: LiveFeed,
    observer: any Observer
  ) {
    self.configuration = configuration
    self.loop = loop
    self.feed = feed
    self.observer = observer
  }

  package func run() async throws {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await listenForever() }
      group.addTask { await StopSignal.wait() }
      await group.next()
      group.cancelAll()
    }
  }

  private func listenForever() async {
    var pause = Duration.milliseconds(100)
    while !Task.isCancelled {
      do {
        let connection = try await PostgresConnection.connect(configuration, on: loop)
        do {
          let notifications = try await connection.listen(Self.channel)
          pause = .milliseconds(100)
          feed.wake()
          for await _ in notifications { feed.wake() }
        } catch {
          observer.observe(.warning("feed.listen_failed", error: StorageError.explaining(error)))
        }
        await connection.close()
      } catch {
        observer.observe(.warning("feed.listen_failed", error: StorageError.explaining(error)))
      }
      try? await Task.sleep(for: pause)
      pause = min(pause * 2, .seconds(5))
    }
  }
}
