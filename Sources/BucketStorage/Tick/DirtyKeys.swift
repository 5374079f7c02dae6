/// Which rows of a source a statement looks at again: an SQL relation of keys.
enum DirtyKeys: Sendable, Hashable {
  /// Those captured since the last tick.
  case captured
  /// All of them: what the table holds, and what was made of it before.
  case everything
  /// The next page of a backfill.
  case page(first: Bool)
}
