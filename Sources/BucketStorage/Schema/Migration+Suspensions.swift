extension Migration {
  static let suspensions = #"""
    -- What the rules were compiled against: the columns that a definition reads, and their types then.
    CREATE TABLE sluice.columns_read (
      definition bigint NOT NULL REFERENCES sluice.definitions ON DELETE CASCADE,
      source int NOT NULL REFERENCES sluice.sources,
      name text NOT NULL,
      type text NOT NULL,
      PRIMARY KEY (definition, source, name)
    );

    -- Definitions that cannot be evaluated over a source, and stand still until they can again.
    CREATE TABLE sluice.suspensions (
      definition bigint NOT NULL REFERENCES sluice.definitions ON DELETE CASCADE,
      source int NOT NULL REFERENCES sluice.sources,
      is_catalog boolean NOT NULL,
      problem text NOT NULL,
      remedy text NOT NULL,
      since timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
      PRIMARY KEY (definition, source)
    );

    -- Types whose values the rules turn into the same text have one name here.
    CREATE FUNCTION sluice.type_read(of_type oid) RETURNS text
      LANGUAGE sql STABLE
      RETURN CASE
        WHEN of_type IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN 'integer'
        WHEN of_type IN ('text'::regtype, 'varchar'::regtype) THEN 'text'
        ELSE pg_catalog.format_type(of_type, NULL) END;

    -- Every column read that is missing, of another type, or not the caller's to read.
    CREATE FUNCTION sluice.columns_amiss(of_sources int[])
      RETURNS TABLE (definition bigint, source int, problem text, name text, type text, found text)
      LANGUAGE sql STABLE AS $$
      SELECT r.definition, r.source,
        CASE WHEN c.oid IS NULL THEN 'table' WHEN a.attnum IS NULL THEN 'column'
          WHEN sluice.type_read(a.atttypid) <> r.type THEN 'type' ELSE 'right' END,
        r.name, r.type, pg_catalog.format_type(a.atttypid, NULL)
      FROM sluice.columns_read r
      JOIN sluice.definitions d ON d.id = r.definition AND d.state <> 'retired'
      JOIN sluice.sources s ON s.id = r.source
      LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = s.schema::name
      LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = s.name::name
      LEFT JOIN pg_catalog.pg_attribute a
        ON a.attrelid = c.oid AND a.attname = r.name::name AND NOT a.attisdropped
      WHERE r.source = ANY (of_sources)
        AND (a.attnum IS NULL OR sluice.type_read(a.atttypid) <> r.type
          OR NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE')
          OR NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))
      ORDER BY r.definition, r.source, r.name
    $$;

    -- Fails when a definition that is kept up to date cannot be evaluated over one of these sources.
    CREATE FUNCTION sluice.assert_columns(of_sources int[]) RETURNS void
      LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (
        SELECT FROM sluice.columns_amiss(of_sources) a
        WHERE NOT EXISTS (SELECT FROM sluice.suspensions s WHERE s.definition = a.definition)
      ) THEN
        RAISE EXCEPTION 'a source table has other columns than the rules read'
          USING ERRCODE = 'datatype_mismatch';
      END IF;
    END $$;
    """#
}
