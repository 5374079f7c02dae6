extension Migration {
  /// Whether ticks wrote entries of a query that its backfill has yet to come to, and has to look for.
  /// Of those that were begun before nobody knows.
  static let backfills = """
    ALTER TABLE sluice.queries ADD COLUMN has_ticked boolean NOT NULL DEFAULT true;
    ALTER TABLE sluice.queries ALTER COLUMN has_ticked SET DEFAULT false;
    """
}
