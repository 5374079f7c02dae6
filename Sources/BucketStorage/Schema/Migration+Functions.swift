extension Migration {
  static let functions = #"""
    -- The number of a bucket, made on first use. Only the sequencer calls it.
    CREATE FUNCTION sluice.bucket_of(of_definition bigint, of_key text) RETURNS bigint
      LANGUAGE plpgsql AS $$
    DECLARE
      found bigint;
    BEGIN
      SELECT b.id INTO found FROM sluice.buckets b
      WHERE b.definition = of_definition AND b.key = of_key
        AND pg_catalog.hashtextextended(b.key, 0::bigint)
          = pg_catalog.hashtextextended(of_key COLLATE "C", 0::bigint);
      IF found IS NULL THEN
        INSERT INTO sluice.buckets (definition, key) VALUES (of_definition, of_key)
        RETURNING id INTO found;
      END IF;
      RETURN found;
    END $$;

    -- The id that a tick has got to; it lives as long as the tick's transaction.
    CREATE FUNCTION sluice.tick_last_id() RETURNS bigint
      LANGUAGE sql STABLE
      RETURN pg_catalog.current_setting('sluice.last_id')::bigint;

    CREATE FUNCTION sluice.stamp_after(previous text) RETURNS text
      LANGUAGE sql VOLATILE
      RETURN pg_catalog.to_char(
        greatest(pg_catalog.clock_timestamp(), previous::timestamptz + interval '1 microsecond')
          AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

    CREATE FUNCTION sluice.system_identifier() RETURNS bigint
      LANGUAGE sql STABLE
      RETURN (SELECT s.system_identifier FROM pg_catalog.pg_control_system() s);

    -- The timeline being written to.
    CREATE FUNCTION sluice.timeline() RETURNS text
      LANGUAGE sql VOLATILE
      RETURN CASE WHEN pg_catalog.pg_is_in_recovery() THEN ''
        ELSE pg_catalog.left(
          pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) END;

    CREATE FUNCTION sluice.database_oid() RETURNS oid
      LANGUAGE sql STABLE
      RETURN (SELECT d.oid FROM pg_catalog.pg_database d
        WHERE d.datname = pg_catalog.current_database());

    -- The files of a source and of its partitions, as the caller's snapshot sees them.
    CREATE FUNCTION sluice.files_seen(of_schema text, of_name text) RETURNS text
      LANGUAGE sql STABLE AS $$
      WITH RECURSIVE tree(relation) AS (
        SELECT c.oid FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = of_schema AND c.relname = of_name
        UNION ALL
        SELECT i.inhrelid FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.relation
        WHERE NOT i.inhdetachpending
      )
      SELECT coalesce(
        pg_catalog.string_agg(c.oid || '=' || c.relfilenode, ',' ORDER BY c.oid), '')
      FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.relation
    $$;

    -- The same as they are at this moment, whatever the snapshot.
    CREATE FUNCTION sluice.files_now(of_schema text, of_name text) RETURNS text
      LANGUAGE sql VOLATILE AS $$
      SELECT coalesce(pg_catalog.string_agg(
        t.relation || '=' || coalesce(pg_catalog.pg_relation_filenode(t.relation), 0), ','
        ORDER BY t.relation), '')
      FROM (
        SELECT pg_catalog.to_regclass(pg_catalog.format('%I.%I', of_schema, of_name))::oid
        UNION
        SELECT p.relid::oid FROM pg_catalog.pg_partition_tree(
          pg_catalog.to_regclass(pg_catalog.format('%I.%I', of_schema, of_name))) p
      ) t(relation)
      WHERE t.relation IS NOT NULL
    $$;

    -- Fails when a table was rewritten, truncated or given other partitions under a tick's snapshot.
    CREATE FUNCTION sluice.assert_files(of_sources int[]) RETURNS void
      LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      IF EXISTS (
        SELECT FROM sluice.sources s WHERE s.id = ANY (of_sources)
          AND sluice.files_seen(s.schema, s.name) <> sluice.files_now(s.schema, s.name)
      ) THEN
        RAISE EXCEPTION 'a source table was replaced while it was read' USING ERRCODE = '40001';
      END IF;
    END $$;

    -- Empties the slots of the inbox that every later tick can do without. Never waits.
    CREATE FUNCTION sluice.empty_inbox() RETURNS int
      LANGUAGE plpgsql AS $$
    DECLARE
      head pg_snapshot;
      current_slot int := (pg_catalog.pg_current_xact_id()::text::bigint >> 12) & 7;
      emptied int := 0;
      busy boolean;
    BEGIN
      FOR slot IN 0..7 LOOP
        CONTINUE WHEN slot = current_slot
          OR pg_catalog.pg_relation_size(('sluice.inbox_' || slot)::regclass) = 0;
        BEGIN
          EXECUTE pg_catalog.format(
            'LOCK TABLE sluice.inbox_%s IN ACCESS EXCLUSIVE MODE NOWAIT', slot);
          SELECT t.snapshot INTO head FROM sluice.ticks t ORDER BY t.number DESC LIMIT 1;
          EXECUTE pg_catalog.format(
            'SELECT EXISTS (SELECT FROM sluice.inbox_%s i WHERE i.xid >= $1 OR i.xid = ANY ($2))',
            slot) INTO busy USING pg_catalog.pg_snapshot_xmax(head),
              ARRAY(SELECT pg_catalog.pg_snapshot_xip(head));
          IF NOT busy THEN
            EXECUTE pg_catalog.format('TRUNCATE sluice.inbox_%s', slot);
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
