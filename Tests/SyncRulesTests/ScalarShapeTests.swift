import SyncRules
import Testing

/// A position in SQL is found in the YAML whatever kind of scalar holds the SQL.
@Suite struct ScalarShapeTests {
  /// Wraps a scalar, given as it stands after the dash of a list.
  private func data(_ scalar: String) -> String {
    "bucket_definitions:\n  b:\n    data:\n      - \(scalar)\n"
  }

  @Test("Plain on one line") func plain() {
    expectFinding(.clause, data("SELECT id FROM t ⟦LIMIT⟧ 5"))
  }

  @Test("Plain on one line with a comment behind") func plainComment() {
    expectFinding(.clause, data("SELECT id FROM t ⟦LIMIT⟧ 5   # no more"))
  }

  @Test("Plain on several lines") func plainLines() {
    expectFinding(.castType, data("SELECT id,\n          n::⟦bigint⟧ AS n\n        FROM t"))
  }

  @Test("Plain with an empty line within") func plainEmptyLine() {
    expectFinding(.castType, data("SELECT id,\n\n\n          n::⟦bigint⟧ AS n\n        FROM t"))
  }

  @Test("Single quotes") func singleQuoted() {
    expectFinding(.clause, data("'SELECT id FROM t ⟦LIMIT⟧ 5'"))
  }

  @Test("Single quotes with doubled quotes before the place") func singleQuotedDoubled() {
    expectFinding(.clause, data("'SELECT id, ''a'' AS a FROM t ⟦LIMIT⟧ 5'"))
  }

  @Test("Single quotes on several lines") func singleQuotedLines() {
    expectFinding(.clause, data("'SELECT id, ''é''\n           AS a FROM t\n\n         ⟦LIMIT⟧ 5'"))
  }

  @Test("Double quotes") func doubleQuoted() {
    expectFinding(.clause, data("\"SELECT id FROM t ⟦LIMIT⟧ 5\""))
  }

  @Test("Double quotes with escapes before and within the place") func doubleQuotedEscapes() {
    expectFinding(
      .clause, data(#""SELECT id,\n\t\"a\" AS \u0061\x62\U00000063 FROM t ⟦L\u0049MIT⟧ 5""#))
  }

  @Test("Double quotes with joined lines") func doubleQuotedJoined() {
    expectFinding(.clause, data("\"SELECT id \\\n           FROM t\n           ⟦LIMIT⟧ 5\""))
  }

  @Test("Literal") func literal() {
    expectFinding(
      .clause, data("|\n        SELECT id\n          FROM t -- 😀\n        ⟦LIMIT⟧ 5"))
  }

  @Test("Literal that keeps or strips its last line break", arguments: ["|-", "|+", "| # why"])
  func literalChomping(_ header: String) {
    expectFinding(
      .clause, data("\(header)\n        SELECT id\n        FROM t\n\n        ⟦LIMIT⟧ 5"))
  }

  @Test("Literal with an indentation indicator") func literalIndented() {
    expectFinding(.clause, data("|2\n          SELECT id\n        FROM t\n        ⟦LIMIT⟧ 5"))
  }

  @Test("Folded") func folded() {
    expectFinding(.clause, data(">\n        SELECT id\n        FROM t\n        ⟦LIMIT⟧ 5"))
  }

  @Test("Folded with empty and more indented lines") func foldedIndented() {
    expectFinding(
      .clause,
      data(
        ">-\n        SELECT id,\n          a\n            AS x\n\n\n        FROM t\n        ⟦LIMIT⟧ 5"
      ))
  }

  @Test("With the line ends of Windows", arguments: ["|", ">", "  "])
  func carriageReturns(_ header: String) {
    let text = data("\(header)\n        SELECT id\n        FROM t\n        ⟦LIMIT⟧ 5")
    expectFinding(.clause, text.replacing("\n", with: "\r\n"))
  }

  @Test("With an anchor and a tag in front") func properties() {
    expectFinding(.clause, data("!!str &one \"SELECT id FROM t ⟦LIMIT⟧ 5\""))
    expectFinding(.clause, data("&one |\n        SELECT id FROM t ⟦LIMIT⟧ 5"))
    expectFinding(.clause, data("&one SELECT id FROM t ⟦LIMIT⟧ 5"))
  }

  @Test("After a byte order mark") func byteOrderMark() {
    expectFinding(.clause, "\u{FEFF}" + data("SELECT id FROM t ⟦LIMIT⟧ 5"))
  }
}
