/// How large one row of a replica can be.
///
/// A row crosses the wire in one line, which a client has to take in whole; the text of a line can be
/// three times that of its row, when every character has to be written as an escape.
package enum RowSize {
  /// The row's JSON and its id, in bytes.
  package static let limit = 32 << 20
  /// The name of the constraint that holds it.
  static let constraint = "entries_row_size"
}

extension Migration {
  /// Rows that are larger and were stored before stay until they are written again.
  static let rowSize = """
    ALTER TABLE sluice.entries ADD CONSTRAINT entries_row_size
      CHECK (octet_length(data) + octet_length(object_id) <= 33554432) NOT VALID;
    """
}
