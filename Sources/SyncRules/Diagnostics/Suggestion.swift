/// Finds the name an author probably meant.
package enum Suggestion {
  /// The candidate nearest to `word`, if one is near enough to be a slip of the fingers.
  package static func nearest(to word: String, among candidates: some Sequence<String>) -> String? {
    let word = Array(word.lowercased().unicodeScalars.prefix(64))
    var best: (candidate: String, distance: Int)?
    for candidate in candidates {
      let distance = distance(word, Array(candidate.lowercased().unicodeScalars))
      if distance < best?.distance ?? (word.count < 4 ? 2 : 1 + word.count / 3) {
        best = (candidate, distance)
      }
    }
    return best?.candidate
  }

  /// The number of insertions, deletions, replacements and swaps of neighbours between two words.
  private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in left.indices {
      var current = [row + 1]
      for column in right.indices {
        let isSame = left[row] == right[column]
        var cost = min(
          last[column] + (isSame ? 0 : 1), last[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
          cost = min(cost, beforeLast[column - 1] + 1)
        }
        current.append(cost)
      }
      beforeLast = last
      last = current
    }
    return last[right.count]
  }
}
