extension Migration {
  static let capture = #"""
    -- The relations of a source at this moment: itself, and its partitions at every level.
    CREATE FUNCTION sluice.relations_of(of_source int)
      RETURNS TABLE (relation oid, is_partitioned boolean, is_root boolean)
      LANGUAGE sql VOLATILE AS $$
      SELECT c.oid, c.relkind = 'p' OR c.relispartition, t.relation = t.root
      FROM sluice.sources s
      CROSS JOIN LATERAL (
        SELECT r.root, r.root AS relation
        FROM (SELECT pg_catalog.to_regclass(pg_catalog.format('%I.%I', s.schema, s.name))::oid) r(root)
        UNION
        SELECT r.root, p.relid::oid
        FROM (SELECT pg_catalog.to_regclass(pg_catalog.format('%I.%I', s.schema, s.name))::oid) r(root),
          pg_catalog.pg_partition_tree(r.root::regclass) p
      ) t
      JOIN pg_catalog.pg_class c ON c.oid = t.relation
      WHERE s.id = of_source
    $$;

    -- How many relations of a source lack a capture trigger, or have it switched off.
    CREATE FUNCTION sluice.uncaptured(of_source int) RETURNS bigint
      LANGUAGE sql VOLATILE AS $$
      SELECT pg_catalog.count(*) FROM sluice.relations_of(of_source) r
      WHERE (SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger g
        JOIN pg_catalog.pg_proc f ON f.oid = g.tgfoid
        JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
        WHERE g.tgrelid = r.relation AND n.nspname = 'sluice'
          AND f.proname ~ ('^capture_' || of_source || '_')
          AND g.tgenabled <> 'D'
          AND g.tgname IN ('sluice_insert', 'sluice_update', 'sluice_delete', 'sluice_truncate')) < 4
    $$;

    -- Gives a source's relations the capture triggers that they lack. Runs with the rights of the role
    -- that installed Sluice, so that the gateway's role need not own the tables.
    CREATE FUNCTION sluice.ensure_capture(of_source int) RETURNS int
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
    DECLARE
      target record;
      made int := 0;
      prefix text := 'sluice.capture_' || of_source || '_';
      key_changes text;
      update_function text;
    BEGIN
      SELECT s.key INTO key_changes FROM sluice.sources s WHERE s.id = of_source;
      FOR target IN SELECT * FROM sluice.relations_of(of_source) LOOP
        IF EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = target.relation
            AND g.tgname = 'sluice_truncate'
            AND g.tgfoid = (prefix || 'truncate()')::regprocedure AND g.tgenabled = 'A') THEN
          CONTINUE;
        END IF;
        EXECUTE format('CREATE OR REPLACE TRIGGER sluice_insert AFTER INSERT ON %s '
          'REFERENCING NEW TABLE AS sluice_new FOR EACH STATEMENT EXECUTE FUNCTION %s()',
          target.relation::regclass, prefix || 'insert');
        EXECUTE format('CREATE OR REPLACE TRIGGER sluice_delete AFTER DELETE ON %s '
          'REFERENCING OLD TABLE AS sluice_old FOR EACH STATEMENT EXECUTE FUNCTION %s()',
          target.relation::regclass, prefix || 'delete');
        IF target.is_partitioned THEN
          EXECUTE format('CREATE OR REPLACE TRIGGER sluice_update AFTER UPDATE ON %s '
            'REFERENCING OLD TABLE AS sluice_old NEW TABLE AS sluice_new '
            'FOR EACH STATEMENT EXECUTE FUNCTION %s()',
            target.relation::regclass, prefix || 'move');
        ELSE
          EXECUTE format('CREATE OR REPLACE TRIGGER sluice_update AFTER UPDATE ON %s '
            'REFERENCING NEW TABLE AS sluice_new FOR EACH STATEMENT EXECUTE FUNCTION %s()',
            target.relation::regclass, prefix || 'update');
          EXECUTE format('CREATE OR REPLACE TRIGGER sluice_update_key AFTER UPDATE ON %s '
            'FOR EACH ROW WHEN (%s) EXECUTE FUNCTION %s()',
            target.relation::regclass, key_changes, prefix || 'key');
        END IF;
        EXECUTE format('CREATE OR REPLACE TRIGGER sluice_truncate AFTER TRUNCATE ON %s '
          'FOR EACH STATEMENT EXECUTE FUNCTION %s()',
          target.relation::regclass, prefix || 'truncate');
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER sluice_truncate',
          target.relation::regclass);
        -- A row trigger of a partitioned table is inherited by its partitions.
        IF target.is_root THEN
          EXECUTE format('CREATE OR REPLACE TRIGGER sluice_replica '
            'AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION %s()',
            target.relation::regclass, prefix || 'replica');
          EXECUTE format('ALTER TABLE %s ENABLE REPLICA TRIGGER sluice_replica',
            target.relation::regclass);
        END IF;
        made := made + 1;
      END LOOP;
      RETURN made;
    END $$;

    -- Takes the capture triggers off a source.
    CREATE FUNCTION sluice.drop_capture(of_source int) RETURNS void
      LANGUAGE plpgsql SET search_path = pg_catalog AS $$
    DECLARE
      target record;
    BEGIN
      FOR target IN
        SELECT g.tgrelid::regclass AS relation, g.tgname FROM pg_trigger g
        JOIN pg_proc f ON f.oid = g.tgfoid JOIN pg_namespace n ON n.oid = f.pronamespace
        WHERE n.nspname = 'sluice' AND f.proname ~ ('^capture_' || of_source || '_')
          AND g.tgparentid = 0
      LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', target.tgname, target.relation);
      END LOOP;
    END $$;

    REVOKE ALL ON FUNCTION sluice.ensure_capture(int), sluice.drop_capture(int) FROM PUBLIC;
    """#
}
