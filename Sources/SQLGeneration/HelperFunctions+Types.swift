extension HelperFunctions {
  static let time = #"""
    -- SQLite's date input as a UTC time. Texts that are not plainly a date are NULL.
    CREATE OR REPLACE FUNCTION sluice.moment(v jsonb, epoch boolean) RETURNS timestamp
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    DECLARE
      t text := v #>> '{}';
      n numeric;
    BEGIN
      IF pg_catalog.jsonb_typeof(v) = 'number' OR t ~ '^[0-9]+(\.[0-9]+)?$' THEN
        n := CASE WHEN epoch THEN t::numeric ELSE (t::numeric - 2440587.5) * 86400 END;
        n := pg_catalog.round(n, 3);
        IF n < -62167219200 OR n > 253402300799 THEN RETURN NULL; END IF;
        RETURN timestamp '1970-01-01' + pg_catalog.make_interval(secs => 0)
          + (n::text || ' seconds')::interval;
      END IF;
      IF t !~ '^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$'
        OR t ~ '^00' THEN RETURN NULL; END IF;
      IF t ~ '(Z|[+-]\d\d:\d\d)$' AND t ~ ':' THEN
        RETURN pg_catalog.timezone('UTC', t::timestamptz);
      END IF;
      RETURN t::timestamp;
    EXCEPTION WHEN OTHERS THEN
      RETURN NULL;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.epoch_seconds(v jsonb, epoch boolean) RETURNS numeric
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN floor(extract(epoch FROM sluice.moment(v, epoch)) * 1000) / 1000;
    """#

  static let types = #"""
    CREATE OR REPLACE FUNCTION sluice.lsn_text(x pg_lsn) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN lpad(split_part(x::text, '/', 1), 8, '0') || '/'
        || lpad(split_part(x::text, '/', 2), 8, '0');

    -- Elements in storage order as nested JSON arrays of these dimensions.
    CREATE OR REPLACE FUNCTION sluice.nest(elements text[], dims int[]) RETURNS text
      LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    DECLARE
      level int;
      width int;
      outer_elements text[];
    BEGIN
      IF elements IS NULL THEN RETURN NULL; END IF;
      IF pg_catalog.cardinality(elements) = 0 THEN RETURN '[]'; END IF;
      FOR level IN REVERSE pg_catalog.cardinality(dims)..1 LOOP
        width := dims[level];
        outer_elements := '{}';
        FOR i IN 0..(pg_catalog.cardinality(elements) / width - 1) LOOP
          outer_elements := outer_elements
            || ('[' || pg_catalog.array_to_string(elements[i * width + 1:(i + 1) * width], ',')
              || ']');
        END LOOP;
        elements := outer_elements;
      END LOOP;
      RETURN elements[1];
    END $$;

    CREATE OR REPLACE FUNCTION sluice.dimensions(a anyarray) RETURNS int[]
      LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT ARRAY(SELECT pg_catalog.array_length(a, n)
        FROM pg_catalog.generate_series(1, pg_catalog.array_ndims(a)) n) $$;
    """#
}
