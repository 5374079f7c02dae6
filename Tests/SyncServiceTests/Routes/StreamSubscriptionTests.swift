import Foundation
import Postgres
import SQLGeneration
import SyncProtocol
import SyncRules
import Synchronization
import TestSupport
import Testing

@testable import SyncService

/// Subscriptions over sockets, on PostgreSQL.
@Suite struct StreamSubscriptionTests {
  private static let schema = """
    CREATE TABLE items (id text PRIMARY KEY, owner text, v int);
    CREATE TABLE members (id text PRIMARY KEY, team text, person text);
    INSERT INTO items VALUES ('a1', 'a', 1), ('b1', 'b', 2), ('b2', 'b', 3);
    INSERT INTO members VALUES ('m1', 'a', 'u');
    """

  /// `mine`: the items of the teams that the user is a member of, for everyone. `owner`: those of each of
  /// `subscription.parameter('owners')`.
  private static let rules: CompiledRules = {
    func source(_ name: String) -> PlanSource {
      let key = PlanKeyColumn(
        name: "id", typeSchema: "pg_catalog", typeName: "text", form: .exact)
      return PlanSource(schema: "public", name: name, key: [key])
    }
    func text(_ column: String) -> PlanExpression { .column(name: column, .text(plain: false)) }
    func definition(
      _ name: String, isDefault: Bool, lookups: [PlanLookup], step: PlanGrant.Step,
      output: PlanExpression
    ) -> PlanDefinition {
      PlanDefinition(
        name: "\(name)|0", stream: PlanStream(name: name, isDefault: isDefault), priority: 3,
        parameters: ["owner"],
        queries: [
          PlanQuery(
            source: 0, outputName: "items",
            columns: [
              .init(name: "id", value: text("id")),
              .init(name: "v", value: .column(name: "v", .integer)),
            ], branches: [PlanBranch(parts: [[text("owner")]], conditions: [])])
        ], lookups: lookups,
        grants: [PlanGrant(priority: 3, conditions: [], steps: [step], outputs: [[output]])])
    }
    let owners = PlanExpression.member(
      .subscription, path: ["owners"], asValue: false, legacyNull: false)
    return SQLGenerator.compile(
      SyncPlan(
        sources: [source("items"), source("members")],
        definitions: [
          definition(
            "mine", isDefault: true,
            lookups: [
              PlanLookup(
                source: 1, branches: [PlanBranch(parts: [[text("person")]], conditions: [])],
                values: [text("team")])
            ], step: .lookup(0, key: [.userID]), output: .found(step: 0, value: 0)),
          definition(
            "owner", isDefault: false, lookups: [], step: .elements(PlanElements(owners)),
            output: .elementValue(0)),
        ]))
  }()

  private func run(_ body: (LiveGateway) async throws -> Void) async throws {
    try await LiveGateway.run(schema: Self.schema, compile: { _ in Self.rules }, body)
  }

  @Test func `a stream brings what is subscribed to, and tells of each subscription`()
    async throws
  {
    try await run { gateway in
      let client = ModelClient(subscriptions: [
        StreamSubscription(
          stream: "owner", parametersJSON: #"{"owners":["b"]}"#, overridePriority: 1),
        StreamSubscription(stream: "owner", parametersJSON: #"{"owners":"b"}"#),
        StreamSubscription(stream: "owners"),
      ])
      let token = try LiveGateway.token("u")
      try await gateway.stream(to: client, token: token) { !$0.completes.isEmpty }
      client.state.withLock { state in
        #expect(state.faults == [])
        #expect(
          state.completes.first?.rows == [
            #"mine|0["a"]"#: ["a1": 1], #"owner|0["b"]"#: ["b1": 2, "b2": 3],
          ])
        #expect(state.announced[#"owner|0["b"]"#]?.priority == 1)
        #expect(state.announced[#"owner|0["b"]"#]?.subscriptions == [0])
        #expect(state.streams.map(\.name) == ["mine", "owner", "owners"])
        #expect(state.streams.map(\.isDefault) == [true, false, false])
        #expect(
          state.streams.map { $0.errors.map(\.subscription) } == [[], [1], [2]])
        #expect(state.streams[1].errors.first?.code == "SLUICE_STREAM_VALUE")
        #expect(
          state.streams[2].errors.first?.message
            == "there is no stream owners; did you mean owner?")
      }
      // What is not subscribed to any more goes away, and what is kept is not sent again.
      let fewer = ModelClient()
      fewer.state.withLock { state in state.copies = client.state.withLock { $0.copies } }
      try await gateway.stream(to: fewer, token: token) { !$0.completes.isEmpty }
      fewer.state.withLock { state in
        #expect(state.faults == [])
        #expect(state.completes.first?.rows == [#"mine|0["a"]"#: ["a1": 1]])
        #expect(state.received.isEmpty)
        #expect(state.streams == [StreamState(name: "mine", isDefault: true)])
      }
    }
  }

  @Test func `a changed lookup moves rows in one checkpoint, beside a subscription`() async throws {
    try await run { gateway in
      let source = gateway.source
      let client = ModelClient(
        subscriptions: [StreamSubscription(stream: "owner", parametersJSON: #"{"owners":["c"]}"#)],
        onComplete: { count in
          guard count == 1 else { return }
          Task {
            try await source.execute(
              """
              BEGIN; UPDATE members SET team = 'b'; UPDATE items SET owner = 'c' WHERE id = 'b1';
              INSERT INTO items VALUES ('b3', 'b', 4); COMMIT
              """)
          }
        })
      try await gateway.stream(to: client, token: try LiveGateway.token("u")) {
        $0.completes.count > 1
      }
      client.state.withLock { state in
        #expect(state.faults == [])
        #expect(
          state.completes.map(\.rows) == [
            [#"mine|0["a"]"#: ["a1": 1], #"owner|0["c"]"#: [:]],
            [#"mine|0["b"]"#: ["b2": 3, "b3": 4], #"owner|0["c"]"#: ["b1": 2]],
          ])
        #expect(state.announced[#"owner|0["c"]"#]?.subscriptions == [0])
      }
    }
  }

  @Test func `pages are asked for with subscriptions too`() async throws {
    try await run { gateway in
      let token = try LiveGateway.token("u")
      func names(_ query: String) async throws -> [String] {
        let answer = try await gateway.get("/v1/buckets\(query)", token: token)
        #expect(answer.status == 200, "\(answer.body)")
        let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
        let buckets = (object as? [String: Any])?["buckets"] as? [[String: Any]]
        return try #require(buckets).compactMap { $0["name"] as? String }
      }
      #expect(try await names("") == [#"mine|0["a"]"#])
      #expect(try await names("?defaults=false") == [])
      let subscription = "subscribe=owner%3Fowners%3D%5B%22b%22%5D"
      #expect(
        try await names("?\(subscription)&subscribe=nothing")
          == [#"mine|0["a"]"#, #"owner|0["b"]"#])
      let path = "/v1/buckets/owner%7C0%5B%22b%22%5D/rows"
      let rows = try await gateway.get("\(path)?\(subscription)&defaults=false", token: token)
      #expect(rows.status == 200 && rows.body.contains("b1") && rows.body.contains("b2"))
      #expect(try await gateway.get(path, token: token).errorCode == "SLUICE_NO_BUCKET")
      for wrong in ["?subscribe=", "?subscribe=a%3Fb", "?defaults=no", "?limit=3", "?x=1"] {
        let answer = try await gateway.get("/v1/buckets\(wrong)", token: token)
        #expect(answer.status == 400, "\(wrong)")
      }
    }
  }

  @Test func `what is no list of subscriptions is refused with a code`() async throws {
    try await run { gateway in
      let token = try LiveGateway.token("u")
      let deep = String(repeating: "[", count: 40) + String(repeating: "]", count: 40)
      let many = [String](repeating: #"{"stream":"owner"}"#, count: 1001).joined(separator: ",")
      for (list, code) in [
        ("{}", "SLUICE_REQUEST_FIELD"), ("[7]", "SLUICE_REQUEST_FIELD"),
        ("[\(many)]", "SLUICE_REQUEST_SIZE"),
        (#"[{"stream":"owner","override_priority":4}]"#, "SLUICE_REQUEST_FIELD"),
        (#"[{"stream":"owner","parameters":{"owners":\#(deep)}}]"#, "SLUICE_REQUEST_DEPTH"),
        (#"[{"stream":"owner","parameters":{"owners":"\u0000"}}]"#, "SLUICE_REQUEST_NUL"),
      ] {
        let answer = try await gateway.send(
          "POST", "/v1/stream", token: token, body: #"{"subscriptions":\#(list)}"#)
        #expect(answer.status == 400)
        #expect(answer.errorCode == code, "\(list.prefix(40))")
      }
      // A thousand of the same are one.
      let client = ModelClient(
        subscriptions: [StreamSubscription](
          repeating: StreamSubscription(stream: "owner", parametersJSON: #"{"owners":["b","b"]}"#),
          count: 1000))
      try await gateway.stream(to: client, token: token) { !$0.completes.isEmpty }
      client.state.withLock { state in
        #expect(state.faults == [])
        #expect(state.copies[#"owner|0["b"]"#]?.rows.count == 2)
        #expect(state.announced[#"owner|0["b"]"#]?.subscriptions == Array(0..<1000))
      }
    }
  }
}
