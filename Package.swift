// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

func system(_ name: String, _ pkgConfig: String, _ package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let package = Package(
  name: "sluice",
  platforms: [.macOS(.v26), .iOS(.v26)],
  products: [
    .library(name: "SluiceClient", targets: ["SluiceClient"]),
    .executable(name: "sluice", targets: ["sluice"]),
    .executable(name: "sluice-replica", targets: ["sluice-replica"]),
  ],
  targets: [
    // 6: commands
    .executableTarget(
      name: "sluice",
      dependencies: [
        "SyncService", "BucketStorage", "SQLGeneration", "SyncRules", "Postgres", "HTTPServer",
        "TokenAuth", "HTTPTransport", "SyncProtocol", "EventLoop", "ServiceRuntime",
        "SluiceClient", "SQLiteReplica",
      ],
      resources: [
        .embedInCode("Demo/schema.sql"), .embedInCode("Demo/data.sql"),
        .embedInCode("Demo/field_service.yaml"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "sluice-replica",
      dependencies: ["SluiceClient", "SQLiteReplica", "SyncProtocol"],
      swiftSettings: strict),
    // 5: the service and the client
    library(
      "SyncService",
      [
        "BucketStorage", "SQLGeneration", "SyncRules", "HTTPServer", "TokenAuth", "SyncProtocol",
        "EventLoop", "ServiceRuntime", "Postgres",
      ]),
    library("SluiceClient", ["SQLiteReplica", "HTTPTransport", "SyncProtocol"]),
    // 4: storage on either side
    library(
      "BucketStorage",
      ["SQLGeneration", "SyncRules", "Postgres", "SyncProtocol", "EventLoop", "ServiceRuntime"]),
    library("SQLiteReplica", ["SyncProtocol", "CSQLite"]),
    // 3: plan to SQL
    library("SQLGeneration", ["SyncRules"]),
    // 2: no edges among these
    library("SyncRules", ["CYAML"]),
    library("Postgres", ["EventLoop", "CPostgres"]),
    library("HTTPServer", ["EventLoop", "ServiceRuntime", "CLibevent"]),
    library("TokenAuth", ["SyncProtocol", "COpenSSL"]),
    library("HTTPTransport", ["CCurl"]),
    // 1: foundations
    library("SyncProtocol"),
    library("EventLoop", ["CLibevent"]),
    library("ServiceRuntime"),
    // tests' support and tests
    library("TestSupport", ["Postgres", "EventLoop"]),
    tests("EventLoopTests", ["EventLoop", "TestSupport"]),
    tests("PostgresTests", ["Postgres", "EventLoop", "TestSupport"]),
    tests("ServiceRuntimeTests", ["ServiceRuntime"]),
    tests("SyncProtocolTests", ["SyncProtocol"]),
    tests(
      "HTTPServerTests", ["HTTPServer", "EventLoop", "HTTPTransport", "TestSupport", "CHTTPParser"]),
    .systemLibrary(
      name: "CHTTPParser", path: "Tests/CHTTPParser", providers: [.apt(["libhttp-parser-dev"])]),
    tests("HTTPTransportTests", ["HTTPTransport", "HTTPServer", "EventLoop"]),
    tests("TokenAuthTests", ["TokenAuth", "TestSupport"]),
    .testTarget(
      name: "SyncRulesTests", dependencies: ["SyncRules"], resources: [.copy("Fixtures")],
      swiftSettings: strict),
    tests("SQLGenerationTests", ["SQLGeneration", "SyncRules", "Postgres", "TestSupport"]),
    tests(
      "BucketStorageTests",
      [
        "BucketStorage", "SQLGeneration", "SyncRules", "Postgres", "EventLoop", "ServiceRuntime",
        "TestSupport",
      ]),
    tests("SQLiteReplicaTests", ["SQLiteReplica", "SyncProtocol"]),
    tests("SluiceClientTests", ["SluiceClient", "SQLiteReplica", "SyncProtocol", "HTTPTransport"]),
    tests(
      "SyncServiceTests",
      [
        "SyncService", "BucketStorage", "SQLGeneration", "SyncRules", "SyncProtocol", "HTTPServer",
        "TokenAuth", "Postgres", "HTTPTransport", "TestSupport",
      ]),
    tests("SluiceCommandTests", ["sluice"]),
    tests(
      "EndToEndTests",
      [
        "SluiceClient", "SQLiteReplica", "SyncProtocol", "HTTPTransport", "Postgres", "TokenAuth",
        "TestSupport",
      ]),
    // C: system libraries, each imported by one module (CLibevent by two)
    system("CYAML", "yaml-0.1", "libyaml-dev"),
    system("CPostgres", "libpq", "libpq-dev"),
    system("COpenSSL", "libcrypto", "libssl-dev"),
    system("CSQLite", "sqlite3", "libsqlite3-dev"),
    system("CLibevent", "libevent", "libevent-dev"),
    system("CCurl", "libcurl", "libcurl4-openssl-dev"),
  ]
)
