/// One step in the life of the `sluice` schema, applied once, in order, each in its own transaction.
package struct Migration: Sendable, Equatable {
  package let name: String
  package let sql: String

  /// All of them. A released one is never changed: another is added.
  package static let all: [Migration] = [
    Migration(name: "0001 tables", sql: tables),
    Migration(name: "0002 inbox", sql: inbox),
    Migration(name: "0003 functions", sql: functions),
    Migration(name: "0004 capture", sql: capture),
    Migration(name: "0005 suspensions", sql: suspensions),
    Migration(name: "0006 row size", sql: rowSize),
    Migration(name: "0007 plain inbox", sql: plainInbox),
    Migration(name: "0008 lenient capture", sql: lenientCapture),
    Migration(name: "0009 search paths", sql: searchPaths),
    Migration(name: "0010 wakeups", sql: wakeups),
    Migration(name: "0011 backfills", sql: backfills),
  ]
}
