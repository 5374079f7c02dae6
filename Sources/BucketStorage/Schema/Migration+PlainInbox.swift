extension Migration {
  /// The slots of the ring as tables that a trigger writes to itself. Routing rows to partitions and
  /// checking their bounds was a good part of what capture cost a statement. Read as one by inheritance;
  /// what a transaction still writes to the inbox as a whole stays in its own table.
  static let plainInbox =
    (0..<InboxRing.slotCount).map { slot in
      "ALTER TABLE sluice.inbox DETACH PARTITION sluice.inbox_\(slot);\n"
    }.joined()
      + #"""
      DROP TABLE sluice.inbox;
      CREATE TABLE sluice.inbox (
        slot int2 NOT NULL,
        source int NOT NULL,
        xid xid8 NOT NULL,
        keys text[] COLLATE "C"
      );
      CREATE INDEX inbox_by_xid ON sluice.inbox (xid);

      """#
    + (0..<InboxRing.slotCount).map { slot in
      "ALTER TABLE sluice.inbox_\(slot) INHERIT sluice.inbox;\n"
    }.joined()
      + #"""

      -- Empties the tables of the inbox that every later tick can do without. Never waits.
      CREATE OR REPLACE FUNCTION sluice.empty_inbox() RETURNS int
        LANGUAGE plpgsql AS $$
      DECLARE
        head pg_snapshot;
        in_turn text := 'inbox_' || ((pg_catalog.pg_current_xact_id()::text::bigint >> 12) & 7);
        target regclass;
        emptied int := 0;
        busy boolean;
      BEGIN
        FOR target IN
          SELECT c.oid FROM pg_catalog.pg_class c
          WHERE (c.oid = 'sluice.inbox'::regclass OR c.oid IN (
              SELECT i.inhrelid FROM pg_catalog.pg_inherits i
              WHERE i.inhparent = 'sluice.inbox'::regclass))
            AND c.relname <> in_turn AND pg_catalog.pg_relation_size(c.oid) > 0
        LOOP
          BEGIN
            EXECUTE pg_catalog.format(
              'LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', target);
            SELECT t.snapshot INTO head FROM sluice.ticks t ORDER BY t.number DESC LIMIT 1;
            EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM ONLY %s i '
              'WHERE i.xid >= $1 OR i.xid = ANY ($2))', target) INTO busy
              USING pg_catalog.pg_snapshot_xmax(head), ARRAY(SELECT pg_catalog.pg_snapshot_xip(head));
            IF NOT busy THEN
              EXECUTE pg_catalog.format('TRUNCATE ONLY %s', target);
              emptied := emptied + 1;
            END IF;
          EXCEPTION WHEN lock_not_available THEN
            NULL;
          END;
        END LOOP;
        RETURN emptied;
      END $$;
      """#
}
