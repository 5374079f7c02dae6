extension Migration {
  /// Capture that depends on no column: no trigger hinders a change of the key, and none fails after it.
  /// What became of the key is found out by the tick.
  static let lenientCapture = #"""
    -- Texts of key columns whose type does not fit any more are NULL.
    CREATE FUNCTION sluice.instant_text(value timestamptz) RETURNS text
      LANGUAGE sql STABLE
      RETURN pg_catalog.to_json(pg_catalog.timezone('UTC', value)) #>> '{}'::text[];
    CREATE FUNCTION sluice.instant_text(value anyelement) RETURNS text
      LANGUAGE sql IMMUTABLE AS 'SELECT NULL::pg_catalog.text';
    CREATE FUNCTION sluice.bytes_text(value bytea) RETURNS text
      LANGUAGE sql IMMUTABLE
      RETURN pg_catalog.encode(value, 'hex');
    CREATE FUNCTION sluice.bytes_text(value anyelement) RETURNS text
      LANGUAGE sql IMMUTABLE AS 'SELECT NULL::pg_catalog.text';

    -- How many relations of a source lack a capture trigger, have one switched off, or one of an
    -- earlier version.
    CREATE OR REPLACE FUNCTION sluice.uncaptured(of_source int) RETURNS bigint
      LANGUAGE sql VOLATILE AS $$
      SELECT pg_catalog.count(*) FROM sluice.relations_of(of_source) r
      WHERE (SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger g
        JOIN pg_catalog.pg_proc f ON f.oid = g.tgfoid
        JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
        WHERE g.tgrelid = r.relation AND n.nspname = 'sluice' AND g.tgenabled <> 'D'
          AND f.proname = 'capture_' || of_source || CASE g.tgname
            WHEN 'sluice_insert' THEN '_insert'
            WHEN 'sluice_update' THEN CASE WHEN r.is_partitioned THEN '_move' ELSE '_change' END
            WHEN 'sluice_delete' THEN '_delete'
            WHEN 'sluice_truncate' THEN '_truncate' END) < 4
    $$;

    -- Gives a source's relations the capture triggers that they lack. Runs with the rights of the role
    -- that installed Sluice, so that the gateway's role need not own the tables.
    CREATE OR REPLACE FUNCTION sluice.ensure_capture(of_source int) RETURNS int
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
    DECLARE
      target record;
      made int := 0;
      prefix text := 'sluice.capture_' || of_source || '_';
    BEGIN
      FOR target IN SELECT * FROM sluice.relations_of(of_source) LOOP
        IF EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = target.relation
            AND g.tgname = 'sluice_update' AND g.tgfoid
              = (prefix || CASE WHEN target.is_partitioned THEN 'move()' ELSE 'change()' END)::regprocedure)
          AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = target.relation
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
        EXECUTE format('CREATE OR REPLACE TRIGGER sluice_update AFTER UPDATE ON %s '
          'REFERENCING OLD TABLE AS sluice_old NEW TABLE AS sluice_new '
          'FOR EACH STATEMENT EXECUTE FUNCTION %s()', target.relation::regclass,
          prefix || CASE WHEN target.is_partitioned THEN 'move' ELSE 'change' END);
        EXECUTE format('DROP TRIGGER IF EXISTS sluice_update_key ON %s',
          target.relation::regclass);
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

    -- Which column of the table it is, whatever it is called, and whether the key is made of it.
    ALTER TABLE sluice.columns_read ADD COLUMN number int2,
      ADD COLUMN is_key boolean NOT NULL DEFAULT false;

    -- Every column read that is missing, of another type, another column, or not the caller's to read;
    -- and every key that does not tell rows apart any more.
    CREATE OR REPLACE FUNCTION sluice.columns_amiss(of_sources int[])
      RETURNS TABLE (definition bigint, source int, problem text, name text, type text, found text)
      LANGUAGE sql STABLE AS $$
      WITH columns AS (
        SELECT r.*, n.oid AS namespace, c.oid AS relation, a.attnum, a.atttypid, a.attnotnull
        FROM sluice.columns_read r
        JOIN sluice.definitions d ON d.id = r.definition AND d.state <> 'retired'
        JOIN sluice.sources s ON s.id = r.source
        LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = s.schema::name
        LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = s.name::name
        LEFT JOIN pg_catalog.pg_attribute a
          ON a.attrelid = c.oid AND a.attname = r.name::name AND NOT a.attisdropped
        WHERE r.source = ANY (of_sources)
      ),
      keys AS (
        SELECT k.definition, k.source, k.relation, pg_catalog.array_agg(k.attnum) AS numbers,
          pg_catalog.string_agg(k.name, ', ' ORDER BY k.name) AS names
        FROM columns k WHERE k.is_key AND k.relation IS NOT NULL
        GROUP BY k.definition, k.source, k.relation
        HAVING pg_catalog.count(k.attnum) = pg_catalog.count(*)
      )
      SELECT x.* FROM (
        SELECT r.definition, r.source,
          CASE WHEN r.relation IS NULL THEN 'table' WHEN r.attnum IS NULL THEN 'column'
            WHEN sluice.type_read(r.atttypid) <> r.type THEN 'type'
            WHEN r.attnum <> r.number THEN 'moved' ELSE 'right' END AS problem,
          r.name, r.type, coalesce(pg_catalog.format_type(r.atttypid, NULL), (
            SELECT w.attname FROM pg_catalog.pg_attribute w
            WHERE w.attrelid = r.relation AND w.attnum = r.number AND NOT w.attisdropped))
        FROM columns r
        WHERE r.attnum IS NULL OR sluice.type_read(r.atttypid) <> r.type OR r.attnum <> r.number
          OR NOT pg_catalog.has_schema_privilege(r.namespace, 'USAGE')
          OR NOT pg_catalog.has_column_privilege(r.relation, r.attnum, 'SELECT')
        UNION ALL
        SELECT k.definition, k.source, 'key', k.names, NULL, NULL
        FROM keys k
        WHERE NOT EXISTS (
          SELECT FROM pg_catalog.pg_index i
          WHERE i.indrelid = k.relation AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
            AND i.indexprs IS NULL AND (i.indisprimary OR i.indimmediate)
            AND NOT EXISTS (
              SELECT FROM pg_catalog.unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) u(number)
              LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = k.relation
                AND a.attnum = u.number AND a.attnotnull
              WHERE a.attnum IS NULL OR u.number <> ALL (k.numbers)))
      ) x ORDER BY x.definition, x.source, x.problem = 'key', x.name
    $$;
    """#
}
