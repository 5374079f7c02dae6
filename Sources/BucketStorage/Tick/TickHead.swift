internal import Postgres

/// The last committed tick, with what the next one compares itself with.
struct TickHead: Sendable, Equatable {
  var tick: Tick
  /// The snapshot's `xmax`, and its `xip` as an array literal.
  var xmax: String
  var xip: String
  var generation: Int64
  /// Where the tick was made: another place means another history.
  var place: Place

  struct Place: Sendable, Equatable {
    var systemIdentifier: String
    var timeline: String
    var database: String
  }

  private static let columns = """
    number, stamp, boundary_id, pg_snapshot_xmax(snapshot)::text,
      ARRAY(SELECT pg_snapshot_xip(snapshot))::text, generation,
      system_identifier::text, timeline, database::text
    """

  static let select = """
    SELECT \(columns) FROM sluice.ticks ORDER BY number DESC LIMIT 1
    """

  /// Adds the next tick; binds: number, stamp, boundary of the last tick, generation.
  static let insert = """
    INSERT INTO sluice.ticks
      (number, stamp, boundary_id, snapshot, generation, system_identifier, timeline, database)
    SELECT $1::bigint, $2::text, greatest(sluice.tick_last_id(), $3::bigint + 16),
      pg_current_snapshot(), $4::bigint, sluice.system_identifier(), sluice.timeline(),
      sluice.database_oid()
    RETURNING \(columns)
    """

  /// Reads the columns above from the first row.
  init?(_ result: PostgresResult) {
    guard result.rowCount == 1, let number = result.firstInt(0), let stamp = result.firstString(1),
      let boundary = result.firstInt(2), let xmax = result.firstString(3),
      let xip = result.firstString(4), let generation = result.firstInt(5),
      let system = result.firstString(6), let timeline = result.firstString(7),
      let database = result.firstString(8)
    else { return nil }
    tick = Tick(number: number, stamp: stamp, boundaryID: boundary)
    self.xmax = xmax
    self.xip = xip
    self.generation = generation
    place = Place(systemIdentifier: system, timeline: timeline, database: database)
  }
}
