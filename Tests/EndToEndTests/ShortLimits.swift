/// Settings that bring into a test's time what takes weeks or minutes in the field.
enum RetentionSettings {
  static let short = """
    retention:
      tombstones: 1s
    """
}

enum SlowReaderSettings {
  static let short = """
    streams:
      slow_reader_timeout: 5s
    """
}
