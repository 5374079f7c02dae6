/// Where each byte of a decoded text stands in the file, so that an error in SQL points into the
/// YAML that holds it.
package struct SourceMap: Sendable {
  /// For each byte of the text the start and the end of what stands for it in the file.
  private let starts: [Int]
  private let ends: [Int]
  private let whole: SourceSpan

  init(starts: [Int], ends: [Int], whole: SourceSpan) {
    self.starts = starts
    self.ends = ends
    self.whole = whole
  }

  /// The map of a text that is itself the file.
  package static func identity(_ text: String) -> SourceMap {
    let count = text.utf8.count
    return SourceMap(
      starts: Array(0..<count), ends: Array(1..<(count + 1)),
      whole: SourceSpan(start: 0, end: count))
  }

  /// The file's bytes for a range of the text's bytes. The end of the text maps to the place after
  /// its last byte.
  package func span(_ range: Range<Int>) -> SourceSpan {
    guard !starts.isEmpty else { return whole }
    let lower = min(max(range.lowerBound, 0), starts.count)
    let upper = min(max(range.upperBound, lower), starts.count)
    let start = lower < starts.count ? starts[lower] : ends[lower - 1]
    return SourceSpan(start: start, end: upper > lower ? ends[upper - 1] : start)
  }
}
