import Testing

@testable import SyncService

@Suite struct ConfigurationReaderTests {
  private func read(
    _ text: String, environment: [String: String] = [:], files: [String: String] = [:]
  ) throws -> ServiceConfiguration {
    struct Missing: Error {}
    var reader = ConfigurationReader(environment: environment) { name in
      if name == "/etc/sluice.yaml" { return text }
      guard let content = files[name] else { throw Missing() }
      return content
    }
    return try reader.read(file: "/etc/sluice.yaml")
  }

  private func problems(_ text: String, environment: [String: String] = [:]) -> [String] {
    do {
      _ = try read(text, environment: environment)
      return []
    } catch {
      return (error as? ConfigurationError)?.problems ?? ["\(error)"]
    }
  }

  @Test func `the documented example`() throws {
    let configuration = try read(
      """
      database: postgresql:///shop?host=/run/postgresql
      rules: /etc/sluice/rules.yaml
      listen: 127.0.0.1:8686
      auth:
        audience: [shop]
        keys: [{kid: dev, kty: oct, alg: HS256, k: c2VjcmV0}]
      """)
    #expect(configuration.database == "postgresql:///shop?host=/run/postgresql")
    #expect(configuration.rules == "/etc/sluice/rules.yaml")
    #expect(configuration.listen == .tcp(host: "127.0.0.1", port: 8686))
    #expect(configuration.auth.audience == ["shop"])
    #expect(
      configuration.auth.keySetJSON
        == #"{"keys":[{"kid":"dev","kty":"oct","alg":"HS256","k":"c2VjcmV0"}]}"#)
  }

  @Test func `the environment wins over the file`() throws {
    let configuration = try read(
      "database: a\nstreams: {maximum: 5}\n",
      environment: ["SLUICE_DATABASE": "b", "SLUICE_STREAMS_MAXIMUM": "7"])
    #expect(configuration.database == "b")
    #expect(configuration.streams.maximum == 7)
  }

  @Test func `secrets may be files`() throws {
    let configuration = try read(
      "database_file: /run/secret/url\nauth:\n  keys: [{kty: oct, k_file: /run/secret/k}]\n",
      files: ["/run/secret/url": "postgresql://x\n", "/run/secret/k": " c2VjcmV0\n"])
    #expect(configuration.database == "postgresql://x")
    #expect(configuration.auth.keySetJSON == #"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#)
  }

  @Test func `a path of the rules is relative to the file`() throws {
    #expect(try read("rules: rules.yaml\n").rules == "/etc/rules.yaml")
  }

  @Test(
    "mistakes are named with their place",
    arguments: [
      ("databse: x\n", "/etc/sluice.yaml:1:1: unknown key databse; did you mean database?"),
      (
        "auth:\n  audiance: [x]\n",
        "/etc/sluice.yaml:2:3: unknown key auth.audiance; did you mean auth.audience?"
      ),
      ("auth: 3\n", "/etc/sluice.yaml:1:7: auth must be a mapping, not a number"),
      (
        "streams:\n  maximum: many\n",
        "/etc/sluice.yaml:2:12: streams.maximum must be a whole number above 0"
      ),
      (
        "tick: {busy: 20}\nlisten: here\n",
        "/etc/sluice.yaml:2:9: listen must be host:port or unix:/path"
      ),
      (
        "log: {level: loud}\n",
        "/etc/sluice.yaml:1:14: log.level is one of debug, info, warning, error"
      ),
    ])
  func mistakes(text: String, problem: String) {
    #expect(problems(text) == [problem])
  }

  @Test func `a mistake in the environment names the variable`() {
    #expect(
      problems("", environment: ["SLUICE_STREAMS_KEEPALIVE": "soon"])
        == ["SLUICE_STREAMS_KEEPALIVE must be a time such as 20ms, 30s, 5m, 1h or 90d"])
  }

  @Test(
    "a variable that nobody reads is a mistake",
    arguments: [
      (
        "SLUICE_STREAMS_MAXIMIM",
        "unknown variable SLUICE_STREAMS_MAXIMIM in the environment; did you mean SLUICE_STREAMS_MAXIMUM?"
      ),
      (
        "SLUICE_DATABSE",
        "unknown variable SLUICE_DATABSE in the environment; did you mean SLUICE_DATABASE?"
      ),
      (
        "SLUICE_DATABASEFILE",
        "unknown variable SLUICE_DATABASEFILE in the environment; did you mean SLUICE_DATABASE_FILE?"
      ),
      (
        "SLUICE_CONFG",
        "unknown variable SLUICE_CONFG in the environment; did you mean SLUICE_CONFIG?"
      ),
      ("SLUICE_", "unknown variable SLUICE_ in the environment"),
      ("SLUICE_PORT", "unknown variable SLUICE_PORT in the environment"),
    ])
  func unknownVariables(name: String, problem: String) {
    #expect(problems("", environment: [name: "7", "PATH": "/bin"]) == [problem])
  }

  /// The names of the last seven are those of Kubernetes' documentation, for a service called sluice.
  @Test(
    "variables that are not the gateway's are none of its business",
    arguments: [
      ("SLUICE_CONFIG", "/etc/sluice.yaml"), ("SLUICE_TOKEN", "a.b.c"), ("SLUICE_TEST_SEED", "7"),
      ("SLUICED", "x"), ("sluice_x", "y"),
      ("SLUICE_SERVICE_HOST", "10.0.0.11"), ("SLUICE_SERVICE_PORT", "6379"),
      ("SLUICE_PORT", "tcp://10.0.0.11:6379"), ("SLUICE_PORT_6379_TCP", "tcp://10.0.0.11:6379"),
      ("SLUICE_PORT_6379_TCP_PROTO", "tcp"), ("SLUICE_PORT_6379_TCP_PORT", "6379"),
      ("SLUICE_PORT_6379_TCP_ADDR", "10.0.0.11"),
    ])
  func othersVariables(name: String, value: String) {
    #expect(problems("", environment: [name: value]) == [])
  }

  @Test(
    "times",
    arguments: [
      ("20ms", Duration.milliseconds(20)), ("30s", .seconds(30)), ("30", .seconds(30)),
      ("5m", .seconds(300)), ("1h", .seconds(3600)), ("90d", .seconds(7_776_000)),
    ])
  func durations(text: String, value: Duration) {
    #expect(ConfigurationReader.duration(text) == value)
  }
}
