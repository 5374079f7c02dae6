extension Migration {
  static let wakeups = #"""
    -- Rows that come out otherwise at an instant, by conditions on the present.
    CREATE TABLE sluice.wakeups (
      source int NOT NULL REFERENCES sluice.sources,
      at timestamptz NOT NULL,
      key text COLLATE "C" NOT NULL
    );
    CREATE INDEX wakeups_by_instant ON sluice.wakeups (at);
    CREATE INDEX wakeups_by_key ON sluice.wakeups
      USING hash (pg_catalog.hashtextextended(key, source::bigint));

    -- The present that rules are evaluated for: the stamp of the tick being made, else of the last one.
    CREATE FUNCTION sluice.tick_now() RETURNS timestamptz
      LANGUAGE plpgsql STABLE SET search_path = pg_catalog AS $$
    DECLARE
      stamp text := pg_catalog.current_setting('sluice.now', true);
    BEGIN
      IF stamp <> '' THEN RETURN stamp::timestamptz; END IF;
      RETURN (SELECT t.stamp::timestamptz FROM sluice.ticks t ORDER BY t.number DESC LIMIT 1);
    END $$;
    """#
}
