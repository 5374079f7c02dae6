/// A half-open range of UTF-8 byte offsets in a rules file.
package struct SourceSpan: Sendable, Hashable, Codable {
  /// The offset of the first byte.
  package var start: Int
  /// The offset after the last byte.
  package var end: Int

  package init(start: Int, end: Int) {
    self.start = start
    self.end = max(start, end)
  }

  /// The smallest span that covers this one and `other`.
  package func joined(with other: SourceSpan) -> SourceSpan {
    SourceSpan(start: min(start, other.start), end: max(end, other.end))
  }
}
