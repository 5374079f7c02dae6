import SQLGeneration
import SyncRules

/// Streams as the compiler would plan them: tasks of boards.
enum StreamRules {
  static let tables = """
    CREATE TABLE members (person text, org text, PRIMARY KEY (person, org));
    CREATE TABLE projects (id text PRIMARY KEY, org text);
    CREATE TABLE boards (id text PRIMARY KEY, project text);
    CREATE TABLE tasks (id text PRIMARY KEY, board text, title text);
    """

  /// `mine`: the tasks of every board of a project of an organisation of the user's, for everyone.
  /// `board`: those of `subscription.parameter('board')`. `boards`: those of each element of
  /// `subscription.parameter('boards')`.
  static let rules = SQLGenerator.compile(
    SyncPlan(
      sources: [
        source("members", key: ["person", "org"]), source("projects"), source("boards"),
        source("tasks"),
      ],
      definitions: [
        stream(
          "mine", isDefault: true, priority: 2,
          lookups: [
            lookup(0, by: "person", gives: "org"), lookup(1, by: "org", gives: "id"),
            lookup(2, by: "project", gives: "id"),
          ],
          steps: [
            .lookup(0, key: [.userID]), .lookup(1, key: [.found(step: 0, value: 0)]),
            .lookup(2, key: [.found(step: 1, value: 0)]),
          ], output: .found(step: 2, value: 0)),
        stream(
          "board", isDefault: false, priority: 3,
          output: .member(.subscription, path: ["board"], asValue: true, legacyNull: false)),
        stream(
          "boards", isDefault: false, priority: 3,
          steps: [
            .elements(
              PlanElements(
                .member(.subscription, path: ["boards"], asValue: false, legacyNull: false)))
          ], output: .elementValue(0)),
      ]))

  private static func source(_ name: String, key: [String] = ["id"]) -> PlanSource {
    PlanSource(
      schema: "public", name: name,
      key: key.map {
        PlanKeyColumn(name: $0, typeSchema: "pg_catalog", typeName: "text", form: .exact)
      })
  }

  private static func column(_ name: String) -> PlanExpression {
    .column(name: name, .text(plain: false))
  }

  private static func lookup(_ source: Int, by key: String, gives value: String) -> PlanLookup {
    PlanLookup(
      source: source, branches: [PlanBranch(parts: [[column(key)]], conditions: [])],
      values: [column(value)])
  }

  private static func stream(
    _ name: String, isDefault: Bool, priority: Int, lookups: [PlanLookup] = [],
    steps: [PlanGrant.Step] = [], output: PlanExpression
  ) -> PlanDefinition {
    PlanDefinition(
      name: "\(name)|0", stream: PlanStream(name: name, isDefault: isDefault), priority: priority,
      parameters: ["board"],
      queries: [
        PlanQuery(
          source: 3, outputName: "tasks",
          columns: ["id", "board", "title"].map { .init(name: $0, value: column($0)) },
          branches: [PlanBranch(parts: [[column("board")]], conditions: [])])
      ],
      lookups: lookups,
      grants: [
        PlanGrant(priority: priority, conditions: [], steps: steps, outputs: [[output]])
      ])
  }
}
