import SyncRules
import Testing

@Suite struct SQLParserTests {
  private func select(_ sql: String) throws -> SelectStatement {
    let (select, diagnostics) = SQLParser.parse(sql, map: .identity(sql))
    #expect(diagnostics.isEmpty)
    return try #require(select)
  }

  @Test(
    "Operators bind as in PostgreSQL",
    arguments: [
      ("a OR b AND NOT c = d", "(OR a (AND b (NOT (= c d))))"),
      ("a AND b AND c", "(AND (AND a b) c)"),
      ("NOT NOT a", "(NOT (NOT a))"),
      ("a = b IS NULL", "(= a (IS NULL b))"),
      ("a = b < c", "(= a (< b c))"),
      ("a = b != c", "(!= (= a b) c)"),
      ("a <> b", "(!= a b)"),
      ("a + b * c - d", "(- (+ a (* b c)) d)"),
      ("a || b || c", "(|| (|| a b) c)"),
      ("a < b + 1", "(< a (+ b 1))"),
      ("a -5", "(- a 5)"),
      ("a - -5", "(- a -5)"),
      ("-5 + a", "(+ -5 a)"),
      ("a BETWEEN 1 AND 2 AND b", "(AND (BETWEEN a 1 2) b)"),
      ("a NOT BETWEEN 1 + 1 AND 2 OR b", "(OR (NOT BETWEEN a (+ 1 1) 2) b)"),
      ("x IN request.jwt() -> 'list'", "(IN x (-> (request.jwt) 'list'))"),
      ("x IN (a) ->> 'k' AND b", "(AND (IN x (->> a 'k')) b)"),
      ("x IN (a)", "(IN x a)"),
      ("x NOT IN (1, 2)", "(NOT IN x (LIST 1 2))"),
      ("x IN (a || b)", "(IN x (|| a b))"),
      ("x IN ARRAY[1, 2] = y", "(= (IN x (ARRAY 1 2)) y)"),
      ("x IN ROW(1, 2)", "(IN x (ROW 1 2))"),
      ("a ->> 'k' = 'v'", "(= (->> a 'k') 'v')"),
      ("a -> 'k' ->> 1", "(->> (-> a 'k') 1)"),
      ("a ->> 'k'::text", "(:: text (->> a 'k'))"),
      ("a::text || b", "(|| (:: text a) b)"),
      ("CAST(a AS blob)", "(:: blob a)"),
      ("-5::text", "(:: text -5)"),
      ("CASE a WHEN 1 THEN 2 ELSE 3 END", "(CASE a (WHEN 1 2) 3)"),
      ("CASE WHEN a THEN b WHEN c THEN d END", "(CASE (WHEN a b) (WHEN c d))"),
      ("a IS NOT TRUE", "(IS NOT TRUE a)"),
      ("a IS FALSE", "(IS FALSE a)"),
      ("a && (SELECT b FROM c)", "(&& a (SELECT))"),
      ("(a OR b) AND c", "(AND (OR a b) c)"),
      ("'it''s'", "'it's'"),
      ("E'a\\tb\\u0041\\x42\\103'", "'a\tbABC'"),
      ("true = NULL", "(= true NULL)"),
      ("1.50", "1.50"),
      ("\"Camel\".\"b\"\"c\"", "Camel.b\"c"),
      ("Upper(A.B)", "(upper a.b)"),
      ("t.key", "t.key"),
      ("t.order", "t.order"),
      ("a /* b /* c */ d */ + -- e\n f", "(+ a f)"),
    ])
  func precedence(_ sql: String, _ tree: String) throws {
    let condition = try select("SELECT WHERE \(sql)").condition
    #expect(try #require(condition).tree == tree)
  }

  @Test("Columns carry their alias and their source text") func columns() throws {
    let sql = "SELECT *, t.*, a, t.b AS \"X\", upper( a ) u, c AS order FROM t"
    let columns = try select(sql).columns
    #expect(columns.map(\.sourceText) == ["*", "t.*", "a", "t.b", "upper( a )", "c"])
    #expect(columns.map { $0.outputName?.name } == [nil, nil, "a", "X", "u", "order"])
  }

  @Test("A bare SELECT has neither columns nor tables", arguments: ["SELECT", "select ;"])
  func bare(_ sql: String) throws {
    let statement = try select(sql)
    #expect(statement.columns.isEmpty && statement.from.isEmpty && statement.condition == nil)
  }

  @Test("FROM takes tables, functions, subqueries and joins") func from() throws {
    let sql = """
      SELECT a.id FROM "tenant_%".a, json_each(a.list) AS e JOIN b x ON x.id = a.id,
      (SELECT c FROM d) AS s (one), "tag.schema"."log_%" l LEFT OUTER JOIN m USING (p, q)
      """
    let from = try select(sql).from
    #expect(from.map { $0.alias?.name } == [nil, "e", "x", "s", "l", nil])
    #expect(from.map { $0.join?.kind } == [nil, nil, .inner, nil, nil, .left])
    #expect(from[3].columnAliases.map(\.name) == ["one"])
    #expect(from[5].join?.using.map(\.name) == ["p", "q"])
    guard case .table(let tenant) = from[0].source, case .table(let log) = from[4].source else {
      Issue.record("Tables expected")
      return
    }
    #expect(tenant.isSchemaWildcard && !tenant.isWildcard)
    #expect(tenant.schemaName == "tenant_%" && tenant.connectionTag == nil)
    #expect(log.isWildcard && log.schemaName == "schema" && log.connectionTag == "tag")
  }

  @Test("Spans cover what they name") func spans() throws {
    let sql = "SELECT id FROM t WHERE a.b = upper('ü') AND c"
    let condition = try #require(try select(sql).condition)
    let file = SourceFile(name: "q", text: sql)
    #expect(file.text(of: condition.span) == "a.b = upper('ü') AND c")
    guard case .binary(_, let left, _) = condition.kind else {
      Issue.record("AND expected")
      return
    }
    #expect(file.text(of: left.span) == "a.b = upper('ü')")
    #expect(left.children.map { file.text(of: $0.span) } == ["a.b", "upper('ü')"])
  }
}

extension Expression {
  /// The tree in prefix form.
  fileprivate var tree: String {
    let parts = children.map(\.tree).joined(separator: " ")
    switch kind {
    case .null: return "NULL"
    case .boolean(let value): return "\(value)"
    case .integer(let digits), .real(let digits): return digits
    case .string(let text): return "'\(text)'"
    case .column(let column):
      return (column.qualifier.map { $0.name + "." } ?? "") + column.name.name
    case .call(let call):
      return "(\(([call.displayName] + children.map(\.tree)).joined(separator: " ")))"
    case .unary(let op, _): return "(\(op.rawValue) \(parts))"
    case .binary(let op, _, _): return "(\(op.rawValue) \(parts))"
    case .isTest(_, let test, let negated):
      return "(IS \(negated ? "NOT " : "")\(test.rawValue) \(parts))"
    case .between(_, _, _, let negated): return "(\(negated ? "NOT " : "")BETWEEN \(parts))"
    case .membership(let operand, let set, let negated):
      let word = negated ? "NOT IN" : "IN"
      switch set {
      case .expression(let inner): return "(\(word) \(operand.tree) \(inner.tree))"
      case .list(let items, _):
        return "(\(word) \(operand.tree) (LIST \(items.map(\.tree).joined(separator: " "))))"
      case .subquery: return "(\(word) \(operand.tree) (SELECT))"
      }
    case .conditional(let operand, let branches, let otherwise):
      let whens = branches.map { "(WHEN \($0.condition.tree) \($0.result.tree))" }
      let items = (operand.map { [$0.tree] } ?? []) + whens + (otherwise.map { [$0.tree] } ?? [])
      return "(CASE \(items.joined(separator: " ")))"
    case .cast(_, let type): return "(:: \(type.rawValue) \(parts))"
    case .member(_, let member, let asValue):
      let key =
        switch member {
        case .key(let key): "'\(key)'"
        case .index(let index): "\(index)"
        }
      return "(\(asValue ? "->>" : "->") \(parts) \(key))"
    case .array: return "(ARRAY \(parts))"
    case .row: return "(ROW \(parts))"
    case .interval(let text): return "(INTERVAL '\(text)')"
    case .subquery: return "(SELECT)"
    }
  }
}
