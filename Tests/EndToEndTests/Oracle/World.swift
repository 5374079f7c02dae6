import Foundation
import TestSupport

/// A random schema, its rules and its users, all from one seed; and what the rules give a user, computed here in plain code.
struct World {
  enum Key: CaseIterable {
    case integer, text, uuid, composite
  }

  enum Filter {
    case none, visible
    case below(Int)
    case labelled(String)
    case withoutOwner
  }

  enum Reason: CaseIterable {
    case group, owner, tag, everybody
    /// The owner is in a group of the user's: a chain, and only streams have those.
    case mate
    /// An OR whose sides are about different things: streams again.
    case ownerOrGroup

    var needsStreams: Bool { self == .mate || self == .ownerOrGroup }
  }

  struct Table {
    let name: String
    let key: Key
    /// The table whose rows take this table's rows with them when they are deleted.
    let parent: String?
  }

  struct Query {
    let table: String
    let output: String
    let reason: Reason
    let filter: Filter
    var isShort: Bool { output != table }
  }

  struct User {
    let name: String
    let tags: [String]
  }

  static let columns = [
    "grp", "owner", "n", "label", "tags", "hidden", "ratio", "price", "at",
  ]
  static let groups = 5
  static let labels = ["red", "green", "it's", "\"quoted\"", "back\\slash", "ünï\u{2028}cøde", ""]
  static let tags = ["a", "b", "c", "d", "e\"f"]
  static let writers = 3

  let tables: [Table]
  let queries: [Query]
  let users: [User]
  let memberFilter: Bool
  /// Whether the rules are streams, and not bucket definitions.
  let hasStreams: Bool

  init(using random: inout SeededGenerator) {
    var tables: [Table] = []
    for number in 1...Int.random(in: 2...4, using: &random) {
      let key = Key.allCases.randomElement(using: &random) ?? .integer
      let simple = tables.filter { $0.key != .composite }
      let parent = Bool.random(using: &random) ? simple.randomElement(using: &random)?.name : nil
      tables.append(Table(name: "t\(number)", key: key, parent: parent))
    }
    // Of two seeds in a row one has streams.
    hasStreams = random.seed.isMultiple(of: 2)
    var queries: [Query] = []
    for table in tables {
      for reason in Reason.allCases.filter({ [hasStreams] in hasStreams || !$0.needsStreams })
      where Int.random(in: 0...2, using: &random) > 0 {
        let filter: Filter =
          switch Int.random(in: 0...5, using: &random) {
          case 0: .visible
          case 1: .below(Int.random(in: 20...80, using: &random))
          // The last label but one holds U+2028, which YAML takes for the end of a line.
          case 2: .labelled(Self.labels.prefix(5).randomElement(using: &random) ?? "red")
          case 3 where reason != .owner: .withoutOwner
          default: .none
          }
        let isShort = reason == .tag || reason == .everybody
        queries.append(
          Query(
            table: table.name, output: isShort ? "\(table.name)_\(reason)" : table.name,
            reason: reason, filter: filter))
      }
    }
    if queries.isEmpty {
      queries = [Query(table: "t1", output: "t1", reason: .group, filter: .none)]
    }
    self.tables = tables
    self.queries = queries
    users = (1...3).map { number in
      User(name: "user\(number)", tags: Self.tags.filter { _ in Bool.random(using: &random) })
    }
    memberFilter = Bool.random(using: &random)
  }

  // MARK: - Schema

  var schema: String {
    var sql = """
      CREATE TABLE history (seq bigserial PRIMARY KEY, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        tbl text NOT NULL, op text NOT NULL, key text, row jsonb);
      CREATE INDEX ON history (xid);
      CREATE TABLE markers (id int PRIMARY KEY, version int NOT NULL);
      CREATE TABLE memberships (id serial PRIMARY KEY, user_id text NOT NULL, grp int, active boolean NOT NULL DEFAULT true);

      """
    for table in tables {
      let key =
        switch table.key {
        case .integer: "id int PRIMARY KEY"
        case .text: "id text PRIMARY KEY"
        case .uuid: "id uuid PRIMARY KEY"
        case .composite: "a int, b text, PRIMARY KEY (a, b)"
        }
      let parent = table.parent.map { name in
        ", parent \(typeName(of: name)) REFERENCES \(name) ON DELETE CASCADE ON UPDATE CASCADE"
      }
      sql += """
        CREATE TABLE \(table.name) (\(key), grp int, owner text, n int, label text, tags jsonb,
          hidden boolean, ratio float8, price numeric(8, 2), at timestamptz\(parent ?? ""));

        """
    }
    let rows =
      [("markers", "r.id::text", "jsonb_build_object('version', r.version)")]
      + [
        (
          "memberships", "r.id::text",
          "jsonb_build_object('user_id', r.user_id, 'grp', r.grp, 'active', r.active::int)"
        )
      ]
      + tables.map { table in
        (
          table.name, table.key == .composite ? "r.a || ':' || r.b" : "r.id::text",
          """
          jsonb_build_object('grp', r.grp, 'owner', r.owner, 'n', r.n, 'label', r.label, 'tags', r.tags::text,
            'hidden', r.hidden::int, 'ratio', r.ratio, 'price', r.price::text,
            'at', to_char(r.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
          """
        )
      }
    for (name, key, row) in rows {
      let old = key.replacingOccurrences(of: "r.", with: "OLD.")
      let new = key.replacingOccurrences(of: "r.", with: "NEW.")
      sql += """
        CREATE FUNCTION log_\(name)() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'TRUNCATE' THEN INSERT INTO history (tbl, op) VALUES ('\(name)', 'T'); RETURN NULL; END IF;
          IF TG_OP <> 'INSERT' THEN INSERT INTO history (tbl, op, key) VALUES ('\(name)', 'D', \(old)); END IF;
          IF TG_OP <> 'DELETE' THEN
            INSERT INTO history (tbl, op, key, row)
              VALUES ('\(name)', 'I', \(new), \(row.replacingOccurrences(of: "r.", with: "NEW.")));
          END IF;
          RETURN NULL;
        END $$;
        CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON \(name) FOR EACH ROW EXECUTE FUNCTION log_\(name)();
        CREATE TRIGGER log_truncate AFTER TRUNCATE ON \(name) EXECUTE FUNCTION log_\(name)();

        """
    }
    return sql
  }

  func typeName(of table: String) -> String {
    switch tables.first(where: { $0.name == table })?.key {
    case .text: "text"
    case .uuid: "uuid"
    default: "int"
    }
  }

  // MARK: - Rules

  var rules: String { hasStreams ? streams : bucketDefinitions }

  private var streams: String {
    var yaml = """
      config:
        edition: 3
      with:
        mine: SELECT grp FROM memberships WHERE user_id = auth.user_id()\(memberFilter ? " AND active" : "")
      streams:
        markers:
          auto_subscribe: true
          query: SELECT id, version FROM markers

      """
    for reason in Reason.allCases {
      let queries = queries.filter { $0.reason == reason }
      guard !queries.isEmpty else { continue }
      yaml += "  \(reason):\n    auto_subscribe: true\n    queries:\n"
      for query in queries { yaml += "      - >-\n        \(sql(query))\n" }
    }
    return yaml
  }

  private var bucketDefinitions: String {
    var yaml = """
      config:
        edition: 2
      bucket_definitions:
        markers:
          data:
            - SELECT id, version FROM markers

      """
    for (reason, name, parameters) in [
      (
        Reason.group, "by_group",
        "SELECT grp FROM memberships WHERE user_id = request.user_id()\(memberFilter ? " AND active" : "")"
      ),
      (.owner, "by_owner", "SELECT request.user_id() AS owner"),
      (.tag, "by_tag", "SELECT value AS tag FROM json_each(request.jwt() -> 'tags')"),
      (.everybody, "for_all", ""),
    ] {
      let queries = queries.filter { $0.reason == reason }
      guard !queries.isEmpty else { continue }
      yaml += "  \(name):\n"
      if !parameters.isEmpty { yaml += "    parameters: \(parameters)\n" }
      yaml += "    data:\n"
      for query in queries { yaml += "      - >-\n        \(sql(query))\n" }
    }
    return yaml
  }

  private func sql(_ query: Query) -> String {
    let isComposite = tables.first { $0.name == query.table }?.key == .composite
    let columns = query.isShort ? ["label", "price"] : Self.columns
    var conditions = hasStreams ? streamConditions(query.reason) : bucketConditions(query.reason)
    switch query.filter {
    case .none: break
    case .visible: conditions.append("NOT hidden")
    case .below(let limit): conditions.append("n < \(limit)")
    case .labelled(let label):
      conditions.append("label = '\(label.replacingOccurrences(of: "'", with: "''"))'")
    case .withoutOwner: conditions.append("owner IS NULL")
    }
    let condition = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
    let alias = query.isShort ? " AS \(query.output)" : ""
    return
      "SELECT \(isComposite ? "a || ':' || b AS id" : "id"), \(columns.joined(separator: ", "))"
      + " FROM \(query.table)\(alias)\(condition)"
  }

  private func bucketConditions(_ reason: Reason) -> [String] {
    switch reason {
    case .group: ["grp = bucket.grp"]
    case .owner: ["owner = bucket.owner"]
    case .tag: ["bucket.tag IN tags"]
    case .everybody, .mate, .ownerOrGroup: []
    }
  }

  private func streamConditions(_ reason: Reason) -> [String] {
    switch reason {
    case .group: ["grp IN mine"]
    case .owner: ["owner = auth.user_id()"]
    case .tag: ["tags && auth.parameter('tags')"]
    case .everybody: []
    case .mate: ["owner IN (SELECT user_id FROM memberships WHERE grp IN mine)"]
    case .ownerOrGroup: ["(owner = auth.user_id() OR grp IN mine)"]
    }
  }

  /// The output tables with their columns, as a reader of the replica's file needs them.
  var outputs: [String: [String]] {
    var outputs = ["markers": ["version"]]
    for query in queries {
      outputs[query.output] = query.isShort ? ["label", "price"] : Self.columns
    }
    return outputs
  }

  // MARK: - Expectation

  /// What `user` may see of `state`, by the meaning of the rules.
  func expected(for user: User, in state: Content) -> Content {
    var content: Content = [:]
    if let markers = state["markers"], !markers.isEmpty { content["markers"] = markers }
    var groups: Set<Int> = []
    let memberships = (state["memberships"] ?? [:]).values
    for row in memberships where row["user_id"] == .text(user.name) {
      if memberFilter, row["active"] != .number("1") { continue }
      if let group = row["grp"]?.integer { groups.insert(group) }
    }
    let mates = Set(
      memberships.filter { $0["grp"]?.integer.map(groups.contains) ?? false }
        .compactMap { $0["user_id"]?.string })
    for query in queries {
      for (id, row) in state[query.table] ?? [:] where passes(query.filter, row) {
        let applies =
          switch query.reason {
          case .group: row["grp"]?.integer.map(groups.contains) ?? false
          case .owner: row["owner"] == .text(user.name)
          case .tag: !Set(tagList(row["tags"])).isDisjoint(with: user.tags)
          case .everybody: true
          case .mate: row["owner"]?.string.map(mates.contains) ?? false
          case .ownerOrGroup:
            row["owner"] == .text(user.name) || row["grp"]?.integer.map(groups.contains) ?? false
          }
        guard applies else { continue }
        content[query.output, default: [:]][id] =
          query.isShort ? row.filter { ["label", "price"].contains($0.key) } : row
      }
    }
    return content
  }

  private func tagList(_ value: Value?) -> [String] {
    guard let text = value?.string else { return [] }
    return (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String] ?? []
  }

  private func passes(_ filter: Filter, _ row: Row) -> Bool {
    switch filter {
    case .none: true
    // NULL counts as false in the rules' logic, so NOT NULL holds.
    case .visible: row["hidden"] != .number("1")
    case .below(let limit): row["n"]?.integer.map { $0 < limit } ?? false
    case .labelled(let label): row["label"] == .text(label)
    case .withoutOwner: row["owner"] == .null
    }
  }
}
