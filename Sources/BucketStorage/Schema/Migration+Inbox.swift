extension Migration {
  /// The ring that capture triggers write to. A row holds up to a thousand keys, because one statement
  /// that changes many rows must cost the application little; no keys at all mean "everything".
  static let inbox =
    #"""
    CREATE TABLE sluice.inbox (
      slot int2 NOT NULL,
      source int NOT NULL,
      xid xid8 NOT NULL,
      keys text[] COLLATE "C"
    ) PARTITION BY LIST (slot);
    """#
    + (0..<InboxRing.slotCount).map { slot in
      """

      CREATE TABLE sluice.inbox_\(slot) PARTITION OF sluice.inbox FOR VALUES IN (\(slot));
      ALTER TABLE sluice.inbox_\(slot) ALTER keys SET STORAGE EXTERNAL;
      """
    }.joined()
    + "\nCREATE INDEX inbox_by_xid ON sluice.inbox (xid);\n"
}
