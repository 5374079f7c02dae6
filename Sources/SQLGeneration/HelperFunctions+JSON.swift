extension HelperFunctions {
  static let json = #"""
    -- A text as JSON; NULL if it is none, or holds what no text of the database can hold.
    CREATE OR REPLACE FUNCTION sluice.json(t text) RETURNS json
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      IF pg_catalog.strpos(t, '\u') > 0 THEN PERFORM t::pg_catalog.jsonb; END IF;
      RETURN t::pg_catalog.json;
    EXCEPTION WHEN OTHERS THEN
      RETURN NULL;
    END $$;

    -- A `json` column may hold escapes that no text can hold; jsonb may not.
    CREATE OR REPLACE FUNCTION sluice.json_column(j json) RETURNS json
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      IF pg_catalog.strpos(j::text, '\u') > 0 THEN RETURN sluice.json(j::text); END IF;
      RETURN j;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.json_ok(t text) RETURNS boolean
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN t IS NULL OR sluice.json(t) IS NOT NULL;

    -- Before `fixed_json_extract`, JSON null was no value for a further step.
    CREATE OR REPLACE FUNCTION sluice.json_or_null(j json) RETURNS json
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE WHEN json_typeof(j) <> 'null' THEN j END;

    CREATE OR REPLACE FUNCTION sluice.is_array(j json) RETURNS boolean
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN coalesce(json_typeof(j) = 'array', false);

    -- The value at a path; array elements by their number. NULL when there is none.
    CREATE OR REPLACE FUNCTION sluice.json_get(j json, path text[]) RETURNS json
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    DECLARE
      step text;
    BEGIN
      FOREACH step IN ARRAY path LOOP
        j := CASE pg_catalog.json_typeof(j)
          WHEN 'object' THEN j -> step
          WHEN 'array' THEN CASE WHEN step ~ '^(0|[1-9][0-9]{0,8})$' THEN j -> step::int END
        END;
        IF j IS NULL THEN RETURN NULL; END IF;
      END LOOP;
      RETURN j;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.json_real(t text) RETURNS float8
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      IF pg_catalog.length(t) < 300 AND t !~ '[eE]' THEN RETURN t::float8; END IF;
      RETURN sluice.parse_real(t);
    END $$;

    CREATE OR REPLACE FUNCTION sluice.json_number(t text, as_real boolean) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      IF as_real OR t ~ '[.eE]' THEN RETURN sluice.real_json(sluice.json_real(t)); END IF;
      RETURN t;
    END $$;

    -- Names that look like array indexes come first, in numeric order; a name counts once.
    CREATE OR REPLACE FUNCTION sluice.json_members(j json)
      RETURNS TABLE (name text, value json, place bigint)
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
    BEGIN ATOMIC
      SELECT name, value, row_number() OVER (
          ORDER BY CASE WHEN name ~ '^(0|[1-9][0-9]{0,8})$' THEN name::bigint END NULLS LAST,
            first)
        FROM (
          SELECT key AS name, (array_agg(m.value ORDER BY ord DESC))[1] AS value, min(ord) AS first
            FROM json_each(j) WITH ORDINALITY m(key, value, ord) GROUP BY key) members;
    END;

    -- JSON without white space, numbers with a point or exponent as REAL (or all of them).
    -- NULL if it is nested too deeply for the server's stack.
    CREATE OR REPLACE FUNCTION sluice.json_compact(j json, as_real boolean) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      IF pg_catalog.json_typeof(j) NOT IN ('object', 'array') THEN
        RETURN sluice.json_print(j, as_real);
      END IF;
      BEGIN
        RETURN sluice.json_print(j, as_real);
      EXCEPTION WHEN statement_too_complex THEN
        RETURN NULL;
      END;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.json_print(j json, as_real boolean) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      CASE pg_catalog.json_typeof(j)
        WHEN 'object' THEN
          RETURN '{' || coalesce((
            SELECT pg_catalog.string_agg(pg_catalog.to_json(m.name)::text || ':'
                || sluice.json_print(m.value, as_real), ',' ORDER BY m.place)
              FROM sluice.json_members(j) m), '') || '}';
        WHEN 'array' THEN
          RETURN '[' || coalesce((
            SELECT pg_catalog.string_agg(sluice.json_print(e.value, as_real), ',' ORDER BY e.ord)
              FROM pg_catalog.json_array_elements(j) WITH ORDINALITY e(value, ord)), '') || ']';
        WHEN 'number' THEN RETURN sluice.json_number(pg_catalog.btrim(j::text, E' \n\r\t'), as_real);
        WHEN 'string' THEN RETURN pg_catalog.to_json(j #>> '{}')::text;
        ELSE RETURN pg_catalog.btrim(j::text, E' \n\r\t');
      END CASE;
    END $$;

    -- A JSON value as an SQL value: `->>`. Legacy: JSON null is the text null.
    CREATE OR REPLACE FUNCTION sluice.json_value(j json, legacy boolean) RETURNS jsonb
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    DECLARE
      t text;
    BEGIN
      CASE pg_catalog.json_typeof(j)
        WHEN 'string' THEN RETURN pg_catalog.to_jsonb(j #>> '{}');
        WHEN 'number' THEN
          t := j::text;
          IF t ~ '[.eE]' THEN RETURN sluice.dyn_real(sluice.json_real(t)); END IF;
          IF pg_catalog.length(t) > 1000 THEN RETURN NULL; END IF;
          RETURN j::jsonb;
        WHEN 'boolean' THEN
          RETURN CASE WHEN pg_catalog.strpos(j::text, 'true') > 0 THEN '1' ELSE '0' END::jsonb;
        WHEN 'null' THEN RETURN CASE WHEN legacy THEN '"null"'::jsonb END;
        ELSE RETURN pg_catalog.to_jsonb(sluice.json_compact(j, false));
      END CASE;
    END $$;

    -- A JSON value as JSON text: `->`. Legacy: JSON null is NULL.
    CREATE OR REPLACE FUNCTION sluice.json_text(j json, legacy boolean) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      IF legacy AND pg_catalog.json_typeof(j) = 'null' THEN RETURN NULL; END IF;
      RETURN sluice.json_compact(j, false);
    END $$;

    CREATE OR REPLACE FUNCTION sluice.json_length(j json) RETURNS bigint
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE json_typeof(j) WHEN 'array' THEN json_array_length(j)
        ELSE CASE WHEN j IS NOT NULL THEN 0 END END;

    CREATE OR REPLACE FUNCTION sluice.json_names(j json) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE WHEN json_typeof(j) = 'object' THEN '[' || coalesce((
        SELECT string_agg(to_json(m.name)::text, ',' ORDER BY m.place)
          FROM sluice.json_members(j) m), '') || ']' END;

    -- Strict JSON in which no object has a name twice.
    CREATE OR REPLACE FUNCTION sluice.json_unique(j json) RETURNS boolean
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    BEGIN
      RETURN CASE pg_catalog.json_typeof(j)
        WHEN 'object' THEN (
          SELECT pg_catalog.count(*) = pg_catalog.count(DISTINCT m.key)
              AND coalesce(pg_catalog.bool_and(sluice.json_unique(m.value)), true)
            FROM pg_catalog.json_each(j) m)
        WHEN 'array' THEN (
          SELECT coalesce(pg_catalog.bool_and(sluice.json_unique(e.value)), true)
            FROM pg_catalog.json_array_elements(j) e)
        ELSE true END;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.json_valid(t text) RETURNS boolean
      LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
    BEGIN
      RETURN coalesce(sluice.json_unique(sluice.json(t)), false);
    EXCEPTION WHEN statement_too_complex THEN
      RETURN false;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.json_contains(j json, v jsonb) RETURNS boolean
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      IF NOT sluice.is_array(j) THEN RETURN NULL; END IF;
      RETURN EXISTS (SELECT FROM pg_catalog.json_array_elements(j) e
        WHERE pg_catalog.json_typeof(e.value) IN ('string', 'number', 'boolean')
          AND sluice.json_value(e.value, false) = v);
    END $$;

    -- The elements of an array or the members of an object, likewise; anything else has none.
    CREATE OR REPLACE FUNCTION sluice.json_elements(j json)
      RETURNS TABLE (place jsonb, value jsonb, key text)
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE ROWS 5 AS $$
    BEGIN
      IF pg_catalog.json_typeof(j) <> 'object' THEN
        RETURN QUERY SELECT * FROM sluice.array_elements(j);
        RETURN;
      END IF;
      RETURN QUERY SELECT pg_catalog.to_jsonb(e.key), sluice.json_value(e.value, false),
          CASE pg_catalog.json_typeof(e.value)
            WHEN 'string' THEN pg_catalog.to_json(e.value #>> '{}')::text
            WHEN 'number' THEN sluice.real_text(sluice.json_real(e.value::text)) END
        FROM pg_catalog.json_each(j) e;
    END $$;

    -- The elements of a JSON array with their places, as SQL values and, texts and numbers only, as
    -- parts of a key. Anything but an array has none.
    CREATE OR REPLACE FUNCTION sluice.array_elements(j json)
      RETURNS TABLE (place jsonb, value jsonb, key text)
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE ROWS 5 AS $$
    BEGIN
      IF NOT sluice.is_array(j) THEN RETURN; END IF;
      RETURN QUERY SELECT pg_catalog.to_jsonb(e.ord - 1), sluice.json_value(e.element, false),
          CASE pg_catalog.json_typeof(e.element)
            WHEN 'string' THEN pg_catalog.to_json(e.element #>> '{}')::text
            WHEN 'number' THEN sluice.real_text(sluice.json_real(e.element::text)) END
        FROM pg_catalog.json_array_elements(j) WITH ORDINALITY e(element, ord);
    END $$;
    """#

  static let requests = #"""
    -- The subscriptions of a request to a stream; the one that every client has is without a place.
    CREATE OR REPLACE FUNCTION sluice.subscriptions(t text, stream text, has_default boolean)
      RETURNS TABLE (place int, parameters text, priority int)
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 2
      BEGIN ATOMIC
        SELECT NULL::int, '{}'::text, NULL::int WHERE has_default
        UNION ALL
        SELECT (e.ord - 1)::int, coalesce(nullif((e.s -> 'parameters')::text, 'null'), '{}'),
          (e.s ->> 'override_priority')::int
        FROM pg_catalog.json_array_elements(sluice.json(t)) WITH ORDINALITY e(s, ord)
        WHERE e.s ->> 'stream' = stream;
      END;

    -- What a request brings as JSON text whose numbers are REAL.
    CREATE OR REPLACE FUNCTION sluice.request_text(t text) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN sluice.json_compact(sluice.json(t), true);

    -- A member of what a request brings: integral numbers are INTEGER, nested values JSON text.
    CREATE OR REPLACE FUNCTION sluice.request_member(t text, path text[]) RETURNS jsonb
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    DECLARE
      j json := sluice.json(t);
      step text;
      x float8;
    BEGIN
      FOREACH step IN ARRAY path LOOP
        IF pg_catalog.json_typeof(j) IS DISTINCT FROM 'object' THEN RETURN NULL; END IF;
        j := j -> step;
      END LOOP;
      CASE pg_catalog.json_typeof(j)
        WHEN 'number' THEN
          x := sluice.parse_real(j::text);
          IF x = pg_catalog.trunc(x) AND pg_catalog.abs(x) < 9007199254740992 THEN
            RETURN pg_catalog.to_jsonb(x::bigint);
          ELSIF j::text !~ '[.eE]' THEN
            RETURN j::jsonb;
          END IF;
          RETURN sluice.dyn_real(x);
        WHEN 'object', 'array' THEN RETURN pg_catalog.to_jsonb(sluice.json_compact(j, true));
        ELSE RETURN sluice.json_value(j, false);
      END CASE;
    END $$;
    """#
}
