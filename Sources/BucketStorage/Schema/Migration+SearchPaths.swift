extension Migration {
  static let searchPaths = #"""
    -- Unless it is named, the schema of the session's own temporary tables comes first: whoever may call
    -- the function could put his own in the place of the catalog's, and have his code run by its owner.
    ALTER FUNCTION sluice.ensure_capture(int) SET search_path = pg_catalog, pg_temp;

    -- Whoever makes a partition of a followed table needs the right on what the row triggers call.
    DO $$
    DECLARE
      capture record;
    BEGIN
      FOR capture IN SELECT p.oid::regprocedure AS name FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'sluice'::regnamespace AND p.proname ~ '^capture_[0-9]+_replica$'
      LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', capture.name);
      END LOOP;
    END $$;
    """#
}
