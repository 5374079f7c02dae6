/// Everything that a gateway is told before it starts.
package struct ServiceConfiguration: Sendable {
  package enum Address: Sendable, Equatable {
    case tcp(host: String, port: Int)
    case unixSocket(path: String)
  }

  package struct Auth: Sendable, Equatable {
    package var audience: [String] = []
    /// A JSON Web Key Set as text, from `keys`.
    package var keySetJSON: String?
    package var keySetFile: String?
    package var keySetURL: String?
    package var maximumLifetime: Duration = .seconds(86_400)
    package var leeway: Duration = .seconds(60)
  }

  package struct Streams: Sendable, Equatable {
    /// Streams open at once; more are answered 503.
    package var maximum = 20_000
    /// Streams that have not completed their first checkpoint; more are answered 503.
    package var starting = 200
    package var keepalive: Duration = .seconds(20)
    /// What waits for a slow reader before the gateway waits for it.
    package var sendQueueBytes = 1 << 20
    /// A client that takes nothing for so long is closed.
    package var slowReaderTimeout: Duration = .seconds(60)
    package var pageRows = 5000
    /// Memory for what is larger than a page and on its way to readers.
    package var largeBytes = 128 << 20
  }

  package struct HTTP: Sendable, Equatable {
    package var connections = 25_000
    package var bodyBytes = 10 << 20
  }

  package struct Tick: Sendable, Equatable {
    package var busy: Duration = .milliseconds(20)
    package var idle: Duration = .milliseconds(50)
  }

  package var database = ""
  package var rules: String?
  package var listen = Address.tcp(host: "127.0.0.1", port: 8686)
  package var auth = Auth()
  package var streams = Streams()
  package var http = HTTP()
  package var tick = Tick()
  package var databaseConnections = 8
  package var tombstoneRetention: Duration = .seconds(90 * 86_400)
  package var logLevel = "info"

  package init() {}
}

/// Everything that is wrong with a configuration, each with its place.
package struct ConfigurationError: Error, Sendable, Equatable {
  package var problems: [String]

  package init(problems: [String]) {
    self.problems = problems
  }
}
