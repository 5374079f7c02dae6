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
    "times",
    arguments: [
      ("20ms", Duration.milliseconds(20)), ("30s", .seconds(30)), ("30", .seconds(30)),
      ("5m", .seconds(300)), ("1h", .seconds(3600)), ("90d", .seconds(7_776_000)),
    ])
  func durations(text: String, value: Duration) {
    #expect(ConfigurationReader.duration(text) == value)
  }
}
