import TestSupport

/// Draws rows and expressions from pools in which the odd values are frequent.
struct ExpressionGenerator {
  var random: SeededGenerator
  let edition3: Bool

  /// The columns of the table, with their PostgreSQL types.
  static let columns = [
    ("i", "int8"), ("k", "int8"), ("r", "float8"), ("s", "text"), ("u", "text"), ("j", "text"),
    ("f", "boolean"), ("b", "bytea"),
  ]

  mutating func pick<T>(_ pool: [T]) -> T { pool.randomElement(using: &random)! }

  mutating func row() -> [String: ReferenceValue] {
    [
      "i": pick([
        .integer(0), .integer(1), .integer(-7), .integer(42), .integer(9_007_199_254_740_993),
      ]),
      "k": pick([.null, .integer(1), .integer(3), .integer(-1)]),
      "r": pick([
        .null, .real(0.5), .real(-1.5), .real(2), .real(1e21), .real(1e-7), .real(123456.789),
      ]),
      "s": pick([
        .null, .text(""), .text("1"), .text("2.5x"), .text(" 7"), .text("abc"), .text("-3e2"),
        .text("it's \"so\""),
      ]),
      "u": pick([.text("Straße"), .text("äÖ"), .text("a🚤b"), .text("ABC"), .null]),
      "j": pick([
        .null, .text(#"{"a":1,"b":[1,2.5,"x",null,true],"c":{"a":"q","d":42.0}}"#),
        .text("[1,\"1\",2.0,false]"),
        .text("[]"), .text("7"), .text("{\"a\":null}"), .text("no json"),
        .text(" [ 3 , {\"a\" : -4} ] "),
      ]),
      "f": pick([.integer(0), .integer(1), .null]),
      "b": pick([.null, .blob([]), .blob(Array("12ab".utf8)), .blob(Array("Hz".utf8))]),
    ]
  }

  mutating func expression(depth: Int) -> ReferenceExpression {
    guard depth > 0 else { return leaf() }
    func sub(_ generator: inout ExpressionGenerator) -> ReferenceExpression {
      generator.expression(depth: depth - 1)
    }
    switch Int.random(in: 0..<(edition3 ? 15 : 13), using: &random) {
    case 0: return .not(sub(&self))
    case 1: return .and(sub(&self), sub(&self))
    case 2: return .or(sub(&self), sub(&self))
    case 3, 4:
      return .compare(pick(["=", "!=", "<", "<=", ">", ">="]), plain(depth), plain(depth))
    case 5: return .isNull(sub(&self), negated: pick([true, false]))
    case 6, 7: return .arithmetic(pick(["+", "-", "*", "/"]), sub(&self), sub(&self))
    case 8: return .concatenate(sub(&self), sub(&self))
    case 9: return .cast(sub(&self), pick(["text", "integer", "real", "numeric", "blob"]))
    case 10: return json(depth)
    case 11, 12: return call(depth)
    case 13: return .choose(sub(&self), plain(depth), plain(depth))
    default: return .isTrue(plain(depth))
    }
  }

  /// One that is no blob: blobs are neither compared nor chosen between.
  private mutating func plain(_ depth: Int) -> ReferenceExpression {
    for _ in 0..<20 {
      let drawn = expression(depth: depth - 1)
      if !drawn.mayBeBlob { return drawn }
    }
    return .column("i")
  }

  private mutating func leaf() -> ReferenceExpression {
    if pick([true, true, false]) { return .column(pick(Self.columns).0) }
    return .literal(
      pick([
        .null, .integer(0), .integer(1), .integer(-2), .integer(100), .real(0.25), .real(-3.75),
        .real(2),
        .text(""), .text("1"), .text("abc"), .text("3.7kg"), .text("ß"), .blob(Array("ab1".utf8)),
      ]))
  }

  private mutating func json(_ depth: Int) -> ReferenceExpression {
    switch pick([0, 1, 2, 3]) {
    case 0:
      return .member(
        .column("j"), pick(["a", "b", "0", "1", "$.c.d", "$.b.2", "$.c.a"]), asValue: true)
    case 1:
      return .member(.column("j"), pick(["a", "b", "c", "0", "$.c", "$.b.1"]), asValue: false)
    case 2: return .call("json_array_length", [.column("j")])
    default:
      let lists: [ReferenceExpression] = [
        .literal(.text("[1, \"abc\", 2.0, true]")), .literal(.text("[]")), .literal(.null),
      ]
      // Edition 3 joins with the elements of a list that is not written as an array.
      guard !edition3 else { return .member(.column("j"), "b", asValue: true) }
      return .contains(plain(depth), list: pick(lists + [.column("j")]))
    }
  }

  private mutating func call(_ depth: Int) -> ReferenceExpression {
    let name = pick([
      "upper", "lower", "substring", "hex", "base64", "length", "typeof", "ifnull", "iif", "instr",
    ])
    switch name {
    case "substring":
      let places: [ReferenceExpression] = [-10, -2, 0, 1, 2, 3, 9].map { .literal(.integer($0)) }
      let others: [ReferenceExpression] = [
        .column("k"), .literal(.real(2.9)), .literal(.text("2x")),
      ]
      let start = pick(places + others)
      guard pick([true, false]) else { return .call(name, [plain(depth), start]) }
      return .call(name, [plain(depth), start, pick(places + others)])
    case "ifnull": return .call(name, [plain(depth), plain(depth)])
    case "iif": return .call(name, [expression(depth: depth - 1), plain(depth), plain(depth)])
    case "instr": return .call(name, [plain(depth), plain(depth)])
    default: return .call(name, [expression(depth: depth - 1)])
    }
  }
}

extension ReferenceExpression {
  fileprivate var mayBeBlob: Bool {
    switch self {
    case .literal(.blob), .column("b"), .cast(_, "blob"): true
    default: false
    }
  }
}
