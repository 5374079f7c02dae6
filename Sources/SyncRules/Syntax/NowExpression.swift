/// A moment that moves with the clock: `now()`, with an interval added or subtracted or without.
struct NowExpression {
  static let example = "write created_at > now() - interval '90 days'"

  /// What is added to the present, in seconds.
  let seconds: Int

  /// Whether the expression has the shape of a moment, right or wrong.
  static func isMeant(by expression: Expression) -> Bool {
    switch expression.kind {
    case .call(let call): call.qualifier == nil && call.name.name.lowercased() == "now"
    case .binary(.add, let left, _), .binary(.subtract, let left, _): isMeant(by: left)
    default: false
    }
  }

  /// The moment; nil if the expression is none.
  init?(_ expression: Expression) throws(Diagnostic) {
    guard Self.isMeant(by: expression) else { return nil }
    switch expression.kind {
    case .call(let call):
      guard call.arguments.isEmpty else {
        throw .error(.now, "now() takes no arguments", at: call.span)
      }
      seconds = 0
    case .binary(let operation, let left, let right):
      guard case .interval(let text) = right.kind else {
        throw .error(
          .now, "only an interval can be added to now()", remedy: Self.example, at: right.span)
      }
      guard let inner = try NowExpression(left) else { return nil }
      let interval = try Self.seconds(of: text, at: right.span)
      seconds = inner.seconds + (operation == .add ? interval : -interval)
    default: return nil
    }
  }

  private static let units: [String: Int] = [
    "second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "day": 86_400, "week": 604_800,
  ]

  /// The length of an interval of weeks, days, hours, minutes and seconds, each a whole number.
  static func seconds(of text: String, at span: SourceSpan) throws(Diagnostic) -> Int {
    let words = text.lowercased().split(separator: " ")
    var total = 0
    var rest = words[...]
    while let amount = rest.popFirst() {
      guard let number = Int(amount), abs(number) < 1_000_000_000, let word = rest.popFirst() else {
        throw wrong(text, at: span)
      }
      let unit = word.hasSuffix("s") ? String(word.dropLast()) : String(word)
      if ["month", "mon", "year", "quarter", "decade"].contains(unit) {
        throw .error(
          .now, "'\(text)' has no fixed length", remedy: "write it in days", at: span)
      }
      guard let length = units[unit] else { throw wrong(text, at: span) }
      total += number * length
    }
    guard !words.isEmpty else { throw wrong(text, at: span) }
    return total
  }

  private static func wrong(_ text: String, at span: SourceSpan) -> Diagnostic {
    .error(
      .now, "'\(text)' is no interval",
      remedy: "write whole numbers of weeks, days, hours, minutes and seconds: '1 day 12 hours'",
      at: span)
  }
}

extension Expression {
  /// A value and the interval that is added to it or subtracted from it.
  var shiftedByInterval: (value: Expression, text: String)? {
    switch kind {
    case .binary(.add, let value, let interval), .binary(.subtract, let value, let interval):
      guard case .interval(let text) = interval.kind else { return nil }
      return (value, text)
    default: return nil
    }
  }
}
