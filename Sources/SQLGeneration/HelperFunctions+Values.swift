extension HelperFunctions {
  static let numbers = #"""
    -- A REAL as JavaScript prints numbers: 1, 1.5, 1e+21, 1e-7.
    CREATE OR REPLACE FUNCTION sluice.real_text(x float8) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE
        WHEN x = 0 THEN '0'
        WHEN abs(x) >= 1e-4 AND abs(x) < 1e15 THEN x::text
        WHEN x IN ('NaN', 'Infinity', '-Infinity') THEN x::text
        WHEN abs(x) >= 1e21 OR abs(x) < 1e-6 THEN regexp_replace(x::text, 'e([+-])0', 'e\1')
        ELSE x::text::numeric::text
      END;

    -- A REAL as a JSON number with a point or an exponent.
    CREATE OR REPLACE FUNCTION sluice.real_json(x float8) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE
        WHEN x IS NULL OR x IN ('NaN', 'Infinity', '-Infinity') THEN 'null'
        WHEN sluice.real_text(x) ~ '[.e]' THEN sluice.real_text(x)
        ELSE sluice.real_text(x) || '.0'
      END;

    -- A text as a REAL: too large is infinite, too small is zero.
    CREATE OR REPLACE FUNCTION sluice.parse_real(t text) RETURNS float8
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      RETURN t::pg_catalog.float8;
    EXCEPTION WHEN numeric_value_out_of_range THEN
      IF t ~ '[eE]-' OR t ~ '^\s*[+-]?0*\.0' THEN RETURN 0; END IF;
      IF t ~ '^\s*-' THEN RETURN '-Infinity'; END IF;
      RETURN 'Infinity';
    END $$;

    -- The leading integer of a text, else 0. Digits after the thousandth do not count, because
    -- numeric has an end.
    CREATE OR REPLACE FUNCTION sluice.text_integer(t text) RETURNS numeric
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE WHEN t IS NOT NULL THEN
        coalesce(substring(left(t, 1000) FROM '^[ \t\n\v\f\r]*([+-]?[0-9]+)')::numeric, 0) END;

    CREATE OR REPLACE FUNCTION sluice.number_prefix(t text) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN substring(
        left(t, 1000) FROM '^[ \t\n\v\f\r]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)');

    -- The leading number of a text as a REAL, else 0.
    CREATE OR REPLACE FUNCTION sluice.text_real(t text) RETURNS float8
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN CASE WHEN t IS NOT NULL THEN
        coalesce(sluice.parse_real(sluice.number_prefix(t)), 0) END;

    CREATE OR REPLACE FUNCTION sluice.real_floor(x float8) RETURNS numeric
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE WHEN x NOT IN ('NaN', 'Infinity', '-Infinity')
        THEN floor(x::text::numeric) END;

    -- Arithmetic of REALs that overflows to infinity instead of failing.
    CREATE OR REPLACE FUNCTION sluice.real_arith(op text, a float8, b float8) RETURNS float8
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    BEGIN
      RETURN CASE op WHEN '+' THEN a + b WHEN '-' THEN a - b WHEN '*' THEN a * b
        ELSE a / nullif(b, 0) END;
    EXCEPTION WHEN numeric_value_out_of_range THEN
      IF op = '/' AND pg_catalog.abs(b) > 1 OR op = '*' AND pg_catalog.abs(a) < 1
        OR op = '*' AND pg_catalog.abs(b) < 1 THEN RETURN 0; END IF;
      RETURN CASE WHEN op = '+' AND a > 0 OR op = '-' AND a > 0
        OR op IN ('*', '/') AND pg_catalog.sign(a) = pg_catalog.sign(b)
        THEN 'Infinity'::float8 ELSE '-Infinity'::float8 END;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.integer_arith(op text, a numeric, b numeric) RETURNS numeric
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE op WHEN '+' THEN a + b WHEN '-' THEN a - b WHEN '*' THEN a * b
        ELSE div(a, nullif(b, 0)) END;
    """#

  static let dynamicValues = #"""
    CREATE OR REPLACE FUNCTION sluice.dyn_real(x float8) RETURNS jsonb
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    BEGIN
      IF x IN ('NaN', 'Infinity', '-Infinity') THEN RETURN NULL; END IF;
      RETURN pg_catalog.to_jsonb(x::text::numeric + 0.0);
    END $$;

    CREATE OR REPLACE FUNCTION sluice.dyn_is_real(v jsonb) RETURNS boolean
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN jsonb_typeof(v) = 'number' AND strpos(v::text, '.') > 0;

    CREATE OR REPLACE FUNCTION sluice.dyn_to_real(v jsonb) RETURNS float8
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN CASE jsonb_typeof(v) WHEN 'number' THEN sluice.parse_real(v::text)
        ELSE sluice.text_real(v #>> '{}') END;

    -- A REAL was a float8 once, so that its cast to one never fails.
    CREATE OR REPLACE FUNCTION sluice.dyn_text(v jsonb) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    DECLARE
      t text := v #>> '{}';
    BEGIN
      IF pg_catalog.jsonb_typeof(v) = 'number' AND pg_catalog.strpos(t, '.') > 0 THEN
        RETURN sluice.real_text(t::float8);
      END IF;
      RETURN t;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.dyn_json(v jsonb) RETURNS text
      LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    DECLARE
      t text := v::text;
    BEGIN
      IF t IS NULL THEN RETURN 'null'; END IF;
      IF pg_catalog.left(t, 1) <> '"' AND pg_catalog.strpos(t, '.') > 0 THEN
        RETURN sluice.real_json(t::float8);
      END IF;
      RETURN t;
    END $$;

    -- A value as it stands in bucket names and lookup keys: 5.0 as 5.
    CREATE OR REPLACE FUNCTION sluice.dyn_key(v jsonb) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    DECLARE
      t text := v::text;
    BEGIN
      IF pg_catalog.left(t, 1) <> '"' AND pg_catalog.strpos(t, '.') > 0 THEN
        RETURN sluice.real_text(t::float8);
      END IF;
      RETURN t;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.text_truth(t text) RETURNS boolean
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN coalesce(t ~ '^[ \t\n\v\f\r]*[+-]?0*[1-9]', false);

    CREATE OR REPLACE FUNCTION sluice.dyn_truth(v jsonb) RETURNS boolean
      LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    BEGIN
      IF v IS NULL THEN RETURN false; END IF;
      IF pg_catalog.jsonb_typeof(v) = 'number' THEN RETURN v <> '0'::jsonb; END IF;
      RETURN sluice.text_truth(v #>> '{}');
    END $$;

    CREATE OR REPLACE FUNCTION sluice.dyn_typeof(v jsonb) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE WHEN v IS NULL THEN 'null' WHEN jsonb_typeof(v) = 'string' THEN 'text'
        WHEN sluice.dyn_is_real(v) THEN 'real' ELSE 'integer' END;

    -- Less than 0, 0 or more than 0; numbers come before texts.
    CREATE OR REPLACE FUNCTION sluice.dyn_compare(a jsonb, b jsonb) RETURNS int
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    DECLARE
      x text := a #>> '{}';
      y text := b #>> '{}';
    BEGIN
      IF a = b THEN RETURN 0; END IF;
      IF pg_catalog.jsonb_typeof(a) <> pg_catalog.jsonb_typeof(b) THEN
        RETURN CASE WHEN pg_catalog.jsonb_typeof(a) = 'number' THEN -1 ELSE 1 END;
      END IF;
      IF pg_catalog.jsonb_typeof(a) = 'number' THEN
        RETURN CASE WHEN x::numeric < y::numeric THEN -1 ELSE 1 END;
      END IF;
      RETURN CASE WHEN x COLLATE "C" < y COLLATE "C" THEN -1 ELSE 1 END;
    END $$;

    -- The leading number of a text: INTEGER if it looks integral, else REAL; 0 if there is none.
    CREATE OR REPLACE FUNCTION sluice.text_number(t text) RETURNS jsonb
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN CASE WHEN t IS NULL THEN NULL
        WHEN sluice.number_prefix(t) ~ '[.eE]'
          THEN sluice.dyn_real(sluice.parse_real(sluice.number_prefix(t)))
        ELSE to_jsonb(sluice.text_integer(t)) END;

    CREATE OR REPLACE FUNCTION sluice.dyn_number(v jsonb) RETURNS jsonb
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN CASE jsonb_typeof(v) WHEN 'string' THEN sluice.text_number(v #>> '{}') ELSE v END;

    CREATE OR REPLACE FUNCTION sluice.dyn_to_integer(v jsonb) RETURNS numeric
      LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
      RETURN CASE jsonb_typeof(v) WHEN 'string' THEN sluice.text_integer(v #>> '{}')
        ELSE floor(v::text::numeric) END;

    CREATE OR REPLACE FUNCTION sluice.dyn_arith(op text, x jsonb, y jsonb) RETURNS jsonb
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    DECLARE
      a jsonb := sluice.dyn_number(x);
      b jsonb := sluice.dyn_number(y);
    BEGIN
      IF sluice.dyn_is_real(a) OR sluice.dyn_is_real(b) THEN
        RETURN sluice.dyn_real(
          sluice.real_arith(op, sluice.dyn_to_real(a), sluice.dyn_to_real(b)));
      END IF;
      RETURN pg_catalog.to_jsonb(
        sluice.integer_arith(op, a::text::numeric, b::text::numeric));
    END $$;
    """#

  static let text = #"""
    CREATE OR REPLACE FUNCTION sluice.blob_text(b bytea) RETURNS text
      LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE AS $$
    DECLARE
      result text := '';
      i int := 0;
      size int;
    BEGIN
      BEGIN
        RETURN pg_catalog.convert_from(b, 'UTF8');
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
      -- Bytes that are not UTF-8 become U+FFFD, one by one.
      WHILE i < pg_catalog.length(b) LOOP
        size := CASE WHEN get_byte(b, i) < 128 THEN 1 WHEN get_byte(b, i) >= 240 THEN 4
          WHEN get_byte(b, i) >= 224 THEN 3 WHEN get_byte(b, i) >= 192 THEN 2 ELSE 1 END;
        BEGIN
          result := result
            || pg_catalog.convert_from(pg_catalog.substring(b, i + 1, size), 'UTF8');
          i := i + size;
        EXCEPTION WHEN OTHERS THEN
          result := result || pg_catalog.chr(65533);
          i := i + 1;
        END;
      END LOOP;
      RETURN result;
    END $$;

    CREATE OR REPLACE FUNCTION sluice.base64(b bytea) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN coalesce(translate(encode(b, 'base64'), E'\n', ''), '');

    -- Lengths and positions count UTF-16 units: a character beyond U+FFFF counts as two.
    CREATE OR REPLACE FUNCTION sluice.units(t text) RETURNS text
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN CASE WHEN octet_length(t) < 4 OR octet_length(t) = char_length(t) THEN t
        ELSE regexp_replace(t, '([\U00010000-\U0010FFFF])', E'\\1\uFDD0', 'g') END;

    CREATE OR REPLACE FUNCTION sluice.text_length(t text) RETURNS bigint
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN char_length(sluice.units(t));

    CREATE OR REPLACE FUNCTION sluice.text_instr(t text, needle text) RETURNS bigint
      LANGUAGE sql IMMUTABLE PARALLEL SAFE
      RETURN strpos(sluice.units(t), sluice.units(needle));

    CREATE OR REPLACE FUNCTION sluice.text_substring(t text, start numeric, len numeric)
      RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    DECLARE
      units text := sluice.units(t);
      size numeric := pg_catalog.char_length(units);
      first numeric := start;
      count numeric := len;
      result text;
    BEGIN
      IF t IS NULL OR start IS NULL THEN RETURN NULL; END IF;
      IF first < 0 THEN
        first := greatest(size + first, 0) + 1;
      ELSIF first = 0 THEN
        first := 1;
        IF count > 0 THEN count := count - 1; END IF;
      END IF;
      count := coalesce(count, size);
      IF count < 0 THEN
        -- The characters before the start.
        count := least(-count, first - 1);
        first := first - count;
      END IF;
      IF first > size OR count <= 0 THEN RETURN ''; END IF;
      result := pg_catalog.substr(units, first::int, least(count, size)::int);
      -- Half of a pair has no text of its own.
      result := pg_catalog.regexp_replace(result, E'^\uFDD0', E'\uFFFD');
      result := pg_catalog.regexp_replace(result, '[\U00010000-\U0010FFFF]$', E'\uFFFD');
      RETURN pg_catalog.translate(result, E'\uFDD0', '');
    END $$;
    """#
}
