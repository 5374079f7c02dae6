/// The ids that this history of the database gave out.
///
/// A standby that takes over, or a backup that is restored, may lack the last ticks. Ids then jump, and
/// the positions in between are known to be of a history that is lost.
enum IDRanges {
  /// More ids than a history can be behind, and few enough for a hundred thousand jumps below 2^53.
  static let jump: Int64 = 1 << 36

  static let close = "UPDATE sluice.id_ranges SET last_id = $1::bigint WHERE last_id IS NULL"
  static let open = "INSERT INTO sluice.id_ranges (first_id) VALUES ($1::bigint)"

  /// SQL that is true when the position (stamp, id) was given out by the history at hand. The stamp is
  /// compared while the tick is remembered.
  static func contains(stamp: String, id: String) -> String {
    """
    EXISTS (SELECT FROM sluice.id_ranges r WHERE \(id) >= r.first_id
        AND \(id) <= coalesce(r.last_id, (SELECT max(t.boundary_id) FROM sluice.ticks t)))
      AND NOT EXISTS (
        SELECT FROM (SELECT t.stamp, t.number FROM sluice.ticks t WHERE t.boundary_id >= \(id)
          ORDER BY t.boundary_id LIMIT 1) k
        WHERE k.stamp <> \(stamp)
          AND k.number > (SELECT min(t.number) FROM sluice.ticks t))
    """
  }
}
