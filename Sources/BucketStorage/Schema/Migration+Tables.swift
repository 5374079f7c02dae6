extension Migration {
  static let tables = #"""
    CREATE TABLE sluice.generations (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      state text NOT NULL CHECK (state IN ('building', 'active', 'retired')),
      rules text NOT NULL,
      source text NOT NULL,
      created_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
      activated_at timestamptz
    );
    CREATE UNIQUE INDEX generations_in_use ON sluice.generations (state) WHERE state <> 'retired';

    CREATE TABLE sluice.sources (
      id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      schema text NOT NULL,
      name text NOT NULL,
      key text NOT NULL,
      files text NOT NULL DEFAULT '',
      UNIQUE (schema, name)
    );

    CREATE TABLE sluice.definitions (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL,
      content_hash text NOT NULL,
      state text NOT NULL CHECK (state IN ('building', 'active', 'retired')),
      floor_id bigint NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX definitions_in_use ON sluice.definitions (name, content_hash)
      WHERE state <> 'retired';

    CREATE TABLE sluice.queries (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      definition bigint NOT NULL REFERENCES sluice.definitions ON DELETE CASCADE,
      ordinal int NOT NULL,
      source int NOT NULL REFERENCES sluice.sources,
      output_name text NOT NULL,
      uses_subkey boolean NOT NULL,
      is_complete boolean NOT NULL DEFAULT false,
      backfilled_to text COLLATE "C",
      rows_read bigint NOT NULL DEFAULT 0,
      UNIQUE (definition, ordinal)
    );

    CREATE TABLE sluice.lookups (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      definition bigint NOT NULL REFERENCES sluice.definitions ON DELETE CASCADE,
      ordinal int NOT NULL,
      source int NOT NULL REFERENCES sluice.sources,
      is_complete boolean NOT NULL DEFAULT false,
      backfilled_to text COLLATE "C",
      rows_read bigint NOT NULL DEFAULT 0,
      UNIQUE (definition, ordinal)
    );

    CREATE TABLE sluice.buckets (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      definition bigint NOT NULL,
      key text COLLATE "C" NOT NULL
    );
    CREATE INDEX buckets_by_key
      ON sluice.buckets (definition, pg_catalog.hashtextextended(key, 0::bigint));

    -- Narrow, and changed in place at every tick.
    CREATE TABLE sluice.bucket_heads (
      bucket bigint PRIMARY KEY,
      last_id bigint NOT NULL,
      row_count bigint NOT NULL,
      digest bigint NOT NULL,
      floor_id bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

    CREATE TABLE sluice.entries (
      query bigint NOT NULL,
      bucket bigint NOT NULL,
      id bigint NOT NULL CHECK (id % 16 <> 0),
      checksum bigint NOT NULL,
      source_key text COLLATE "C" NOT NULL,
      object_id text COLLATE "C" NOT NULL,
      stamp text COLLATE "C" NOT NULL,
      data text COLLATE "C"
    ) WITH (autovacuum_vacuum_scale_factor = 0.05);
    CREATE UNIQUE INDEX entries_by_bucket ON sluice.entries (bucket, id);
    CREATE INDEX entries_by_key ON sluice.entries
      USING hash (pg_catalog.hashtextextended(source_key, query));
    CREATE INDEX entries_tombstones ON sluice.entries (id) WHERE data IS NULL;

    CREATE TABLE sluice.parameters (
      lookup bigint NOT NULL,
      key text COLLATE "C" NOT NULL,
      value text COLLATE "C" NOT NULL,
      source_key text COLLATE "C" NOT NULL
    );
    CREATE INDEX parameters_by_key ON sluice.parameters USING hash (key);
    CREATE INDEX parameters_by_source ON sluice.parameters
      USING hash (pg_catalog.hashtextextended(source_key, lookup));

    -- Only ever added to: the head is the highest number.
    CREATE TABLE sluice.ticks (
      number bigint PRIMARY KEY,
      stamp text COLLATE "C" NOT NULL,
      boundary_id bigint NOT NULL UNIQUE CHECK (boundary_id % 16 = 0),
      snapshot pg_snapshot NOT NULL,
      generation bigint NOT NULL,
      system_identifier bigint NOT NULL,
      timeline text NOT NULL,
      database oid NOT NULL
    );

    CREATE TABLE sluice.bucket_changes (
      tick bigint NOT NULL,
      bucket bigint NOT NULL,
      last_id bigint NOT NULL,
      PRIMARY KEY (tick, bucket)
    );
    CREATE INDEX bucket_changes_by_bucket ON sluice.bucket_changes (bucket, last_id);

    CREATE TABLE sluice.lookup_changes (
      tick bigint NOT NULL,
      lookup bigint NOT NULL,
      key text COLLATE "C" NOT NULL
    );
    CREATE INDEX lookup_changes_by_tick ON sluice.lookup_changes (tick);

    -- The ids that this history gave out; between two ranges lie those of a history that was lost.
    CREATE TABLE sluice.id_ranges (
      first_id bigint PRIMARY KEY,
      last_id bigint
    );
    """#
}
