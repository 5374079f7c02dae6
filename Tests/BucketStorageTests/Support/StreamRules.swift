import SQLGeneration
import SyncRules

/// Streams of tasks of boards.
enum StreamRules {
  static let tables = """
    CREATE TABLE members (person text, org text, PRIMARY KEY (person, org));
    CREATE TABLE projects (id text PRIMARY KEY, org text);
    CREATE TABLE boards (id text PRIMARY KEY, project text);
    CREATE TABLE tasks (id text PRIMARY KEY, board text, title text);
    """

  private static let text = """
    config: { edition: 3 }
    streams:
      mine:
        auto_subscribe: true
        priority: 2
        query: |
          SELECT * FROM tasks WHERE board IN (SELECT boards.id FROM boards, projects, members
            WHERE boards.project = projects.id AND projects.org = members.org
              AND members.person = auth.user_id())
      board:
        accept_potentially_dangerous_queries: true
        query: SELECT * FROM tasks WHERE board = subscription.parameter('board')
      boards:
        accept_potentially_dangerous_queries: true
        query: SELECT * FROM tasks WHERE board IN subscription.parameter('boards')
      staff:
        query: SELECT * FROM projects WHERE auth.user_id() IN (SELECT person FROM members WHERE org > 'o')
    """

  /// `mine`: the tasks of every board of a project of an organisation of the user's, for everyone.
  /// `board`, `boards`: those of the boards that the subscription names. `staff`: all projects, for whoever
  /// is a member of anything.
  static let rules: CompiledRules = {
    let (rules, _) = RulesReader.read(text, fileName: "rules.yaml")
    guard let rules, let plan = PlanCompiler.compile(rules, catalog).plan else {
      fatalError("the streams of the tests do not compile")
    }
    return SQLGenerator.compile(plan)
  }()

  private static let catalog = Catalog(
    tables: [
      ("members", ["person", "org"], ["person", "org"]), ("projects", ["id", "org"], ["id"]),
      ("boards", ["id", "project"], ["id"]), ("tasks", ["id", "board", "title"], ["id"]),
    ].map { name, columns, key in
      CatalogTable(
        schema: "public", name: name,
        columns: columns.map { CatalogColumn(name: $0, type: .builtIn("text"), notNull: true) },
        key: key)
    })
}
