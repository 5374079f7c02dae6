/// The slots of the inbox: a transaction's changes go to the slot that its id names.
package enum InboxRing {
  static let slotCount = 8
  /// Transactions per slot and turn of the ring, as a power of two.
  static let shift = 12

  /// SQL for the slot of the transaction that asks, an `int8`, every name with its schema.
  static let currentSlot =
    "(pg_catalog.txid_current() OPERATOR(pg_catalog.>>) \(shift)) "
    + "OPERATOR(pg_catalog.&) \(slotCount - 1)::pg_catalog.int8"

  /// SQL that is true for a row of the inbox that the snapshot with this `xmax` and `xip` did not see.
  static func window(xmax: String, xip: String) -> String {
    "(i.xid >= \(xmax)::xid8 OR i.xid = ANY (\(xip)::xid8[]))"
  }
}
