internal import SQLGeneration

/// The functions that write the keys of a table's changed rows to the inbox.
///
/// They run in the application's transactions with the rights of Sluice's owner, so every name in them
/// has its schema, and nothing depends on the session's search path or settings. They are static, one
/// for each table and event, because dynamic SQL and per-call settings cost every write.
struct CaptureScript {
  let source: Int64
  let key: SourceKey

  /// True when an update changed the key's text; for the `WHEN` of a row trigger.
  var keyChanges: String {
    "(\(key.text(of: "old"))) COLLATE pg_catalog.\"C\" "
      + "IS DISTINCT FROM (\(key.text(of: "new"))) COLLATE pg_catalog.\"C\""
  }

  /// `CREATE OR REPLACE FUNCTION` statements.
  var functions: String {
    [
      statement("insert", keys: "SELECT \(key.text(of: "n")) AS key FROM sluice_new n"),
      statement("update", keys: "SELECT \(key.text(of: "n")) AS key FROM sluice_new n"),
      statement("delete", keys: "SELECT \(key.text(of: "o")) AS key FROM sluice_old o"),
      statement(
        "move",
        keys: "SELECT \(key.text(of: "o")) AS key FROM sluice_old o UNION ALL "
          + "SELECT \(key.text(of: "n")) FROM sluice_new n"),
      function("key", body: row("old")),
      function("truncate", body: insert(keys: "NULL::pg_catalog.text[]", from: "")),
      function(
        "replica",
        body: """
          IF TG_OP OPERATOR(pg_catalog.<>) 'INSERT'::pg_catalog.text THEN
            \(row("old"))
          END IF;
          IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE'::pg_catalog.text THEN
            \(row("new"))
          END IF;
          """),
    ].joined(separator: "\n")
  }

  private func row(_ alias: String) -> String {
    insert(keys: "ARRAY[(\(key.text(of: alias)))]::pg_catalog.text[]", from: "")
  }

  /// A thousand keys to a row: the inbox costs the application's statement least this way.
  private func statement(_ event: String, keys: String) -> String {
    function(
      event,
      body: insert(
        keys: "pg_catalog.array_agg(k.key)",
        from: " FROM (SELECT a.key, (pg_catalog.row_number() OVER ()) "
          + "OPERATOR(pg_catalog./) 1000::pg_catalog.int8 AS part FROM (\(keys)) a) k "
          + "GROUP BY k.part"))
  }

  private func insert(keys: String, from: String) -> String {
    "INSERT INTO sluice.inbox (slot, source, xid, keys) "
      + "SELECT \(InboxRing.slot(of: "x::pg_catalog.text::pg_catalog.int8")), "
      + "\(source), x, \(keys)\(from);"
  }

  private func function(_ event: String, body: String) -> String {
    """
    CREATE OR REPLACE FUNCTION sluice.capture_\(source)_\(event)() RETURNS trigger
      LANGUAGE plpgsql SECURITY DEFINER AS $sluice$
    DECLARE
      x pg_catalog.xid8 := pg_catalog.pg_current_xact_id();
    BEGIN
      \(body)
      RETURN NULL;
    END $sluice$;
    REVOKE ALL ON FUNCTION sluice.capture_\(source)_\(event)() FROM PUBLIC;
    """
  }
}
