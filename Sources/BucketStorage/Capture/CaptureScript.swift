internal import SQLGeneration

/// The functions that write the keys of a table's changed rows to the inbox.
///
/// They run in the application's transactions with the rights of Sluice's owner, so every name in them
/// has its schema, and nothing depends on the session's search path or settings.
///
/// The application's statement must succeed whatever was done to the table. So the columns of the key are
/// not named with their table: a column that is gone is found in a row of NULLs further out
/// (`SourceKey.absentColumns`), which costs nothing once it is planned, and a statement without key texts
/// writes NULL, which means "everything".
///
/// Most statements change one row, so that one costs least: static statements, one for each slot of the
/// ring because dynamic ones would be planned every time, and no aggregate. Only when such a statement
/// meets more rows are they gathered, and only when there are very many are they taken in parts, which
/// bounds what memory an application's statement needs.
struct CaptureScript {
  /// Rises with every change of the functions, so that an installation brings those in use up to date.
  static let version = 2

  let source: Int64
  let key: SourceKey

  /// Keys of one statement that are written as one row.
  private static let manyLimit = 100_000

  /// `CREATE OR REPLACE FUNCTION` statements.
  var functions: String {
    let new = keys("SELECT \(key.capturedText) AS key FROM sluice_new")
    let old = keys("SELECT \(key.capturedText) AS key FROM sluice_old")
    let moved = keys(
      "SELECT \(key.capturedText) AS key FROM sluice_new UNION ALL "
        + "SELECT \(key.capturedText) FROM sluice_old")
    return [
      statement("insert", one: one(new), rows: 1, many: many(new), all: all(new)),
      statement("delete", one: one(old), rows: 1, many: many(old), all: all(old)),
      statement(
        "change", one: Self.pair(new, old), rows: 1, many: pairs(new, old), all: all(moved)),
      // Of a partitioned table: a row that moves may be missing on one side.
      statement("move", one: one(moved), rows: 2, many: many(moved), all: all(moved)),
      function("truncate", declarations: "", body: inSlot("NULL::pg_catalog.text[]")),
      replica,
    ].joined(separator: "\n")
  }

  /// A relation of the key texts that a query makes of transition tables, as an item of FROM.
  private func keys(_ query: String) -> String {
    "(\(key.absentColumns)) absent, LATERAL (\(query))"
  }

  // MARK: What is written

  private func one(_ keys: String) -> String {
    "CASE WHEN k.key IS NOT NULL THEN ARRAY[k.key] END FROM \(keys) k"
  }

  /// One row before and after. Nothing is equal to NULL, and nothing different from it.
  private static func pair(_ new: String, _ old: String) -> String {
    let (after, before) = ("n.key COLLATE pg_catalog.\"C\"", "o.key COLLATE pg_catalog.\"C\"")
    return "CASE WHEN \(after) OPERATOR(pg_catalog.=) \(before) THEN ARRAY[n.key] "
      + "WHEN \(after) OPERATOR(pg_catalog.<>) \(before) THEN ARRAY[n.key, o.key] END "
      + "FROM (SELECT n.key FROM \(new) n) n, (SELECT o.key FROM \(old) o) o"
  }

  private func gathered(_ keys: String) -> String {
    "(SELECT pg_catalog.array_agg(k.key COLLATE pg_catalog.\"C\") AS keys "
      + "FROM (SELECT k.key FROM \(keys) k LIMIT \(Self.manyLimit + 1)) k)"
  }

  private func fits(_ keys: String) -> String {
    "pg_catalog.cardinality(\(keys)) OPERATOR(pg_catalog.<=) \(Self.manyLimit)"
  }

  private func many(_ keys: String) -> String {
    "CASE WHEN k.keys[1] IS NOT NULL THEN k.keys END FROM \(gathered(keys)) k "
      + "WHERE \(fits("k.keys"))"
  }

  /// Both tables have the rows in the same order, so equal arrays mean that no key changed.
  private func pairs(_ new: String, _ old: String) -> String {
    "CASE WHEN n.keys[1] IS NULL THEN NULL WHEN n.keys OPERATOR(pg_catalog.=) o.keys THEN n.keys "
      + "ELSE n.keys OPERATOR(pg_catalog.||) o.keys END "
      + "FROM \(gathered(new)) n, \(gathered(old)) o WHERE \(fits("n.keys")) AND \(fits("o.keys"))"
  }

  private func all(_ keys: String) -> String {
    "CASE WHEN pg_catalog.count(k.key) OPERATOR(pg_catalog.>) 0 THEN pg_catalog.array_agg(k.key) END "
      + "FROM (SELECT k.key, (pg_catalog.row_number() OVER ()) OPERATOR(pg_catalog./) 1000 AS part "
      + "FROM \(keys) k) k GROUP BY k.part"
  }

  // MARK: Functions

  /// `rows` of `one` are all that there can be, or `many` looks at them again.
  private func statement(
    _ event: String, one: String, rows: Int, many: String, all: String
  ) -> String {
    let rest = SQLLiteral(" (slot, source, xid, keys) SELECT ")
    let values = SQLLiteral(", \(source), pg_catalog.pg_current_xact_id(), \(all)")
    return function(
      event, declarations: "written pg_catalog.int8;",
      body: """
        \(inSlot("\(one) LIMIT \(rows + 1)"))
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written OPERATOR(pg_catalog.<=) \(rows) THEN
          RETURN NULL;
        END IF;
        \(inSlot(many))
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written OPERATOR(pg_catalog.=) 0 THEN
          EXECUTE pg_catalog.concat('INSERT INTO sluice.inbox_', slot, \(rest), slot, \(values));
        END IF;
        """)
  }

  /// Rows that logical replication applies come one by one. Whatever keeps a row's key from being made
  /// must not stop it.
  private var replica: String {
    function(
      "replica", declarations: "texts pg_catalog.text[] := '{}';",
      body: """
        BEGIN
          IF TG_OP OPERATOR(pg_catalog.<>) 'INSERT'::pg_catalog.text THEN
            texts := pg_catalog.array_append(texts, \(key.text(of: "old")));
          END IF;
          IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE'::pg_catalog.text THEN
            texts := pg_catalog.array_append(texts, \(key.text(of: "new")));
          END IF;
        EXCEPTION WHEN OTHERS THEN
          texts := NULL;
        END;
        \(inSlot("texts"))
        """)
  }

  /// The insertion of these values into the slot in turn.
  private func inSlot(_ values: String) -> String {
    func branch(_ slots: Range<Int>) -> String {
      guard slots.count > 1 else {
        let slot = slots.lowerBound
        return "INSERT INTO sluice.inbox_\(slot) (slot, source, xid, keys) "
          + "SELECT \(slot), \(source), pg_catalog.pg_current_xact_id(), \(values);"
      }
      let middle = (slots.lowerBound + slots.upperBound) / 2
      return """
        IF slot OPERATOR(pg_catalog.<) \(middle) THEN
        \(branch(slots.lowerBound..<middle))
        ELSE
        \(branch(middle..<slots.upperBound))
        END IF;
        """
    }
    return branch(0..<InboxRing.slotCount)
  }

  private func function(_ event: String, declarations: String, body: String) -> String {
    """
    CREATE OR REPLACE FUNCTION sluice.capture_\(source)_\(event)() RETURNS trigger
      LANGUAGE plpgsql SECURITY DEFINER AS $sluice$
    #variable_conflict use_column
    DECLARE
      slot pg_catalog.int8 := \(InboxRing.currentSlot);
      \(declarations)
    BEGIN
      \(body)
      RETURN NULL;
    END $sluice$;
    \(rights(event))
    """
  }

  /// Nobody calls them by name, and without a right on the schema nobody could. But whoever makes a
  /// partition needs the right on what its parent's row triggers call.
  private func rights(_ event: String) -> String {
    let function = "FUNCTION sluice.capture_\(source)_\(event)()"
    return event == "replica"
      ? "GRANT EXECUTE ON \(function) TO PUBLIC;" : "REVOKE ALL ON \(function) FROM PUBLIC;"
  }
}
