/// Finds comparisons of a column with a constant that cannot come out as their author expects.
struct ComparisonLint {
  let comparison: PlanExpression.Comparison
  let column: TypedScalar
  let constant: TypedScalar

  /// What is wrong; nil if nothing is, or if the column's type is not known.
  func finding(at span: SourceSpan) -> Diagnostic? {
    guard let column = column.column,
      case .column(let name, let conversion) = self.column.expression
    else { return nil }
    switch (conversion.valueClass, constant.expression) {
    case (.text, .integer), (.text, .real):
      if column.type.base.name == "numeric" {
        return .warning(
          .warnNumeric, "\(name) is numeric and therefore text: it never equals a number",
          remedy: "write CAST(\(name) AS real)", at: span)
      }
      let type = column.type.base.name
      let isText = ["text", "varchar", "bpchar"].contains(type)
      let what = isText ? "a text" : "\(type) and therefore text"
      return .warning(
        .warnClass, "\(name) is \(what): it never equals a number",
        remedy: "write the value as a text, or CAST(\(name) AS integer)", at: span)
    case (.integer, .text(let text)) where column.type.base.name == "bool":
      return .warning(
        .warnClass, "\(name) is 1 or 0: it never equals the text '\(text)'",
        remedy: "write \(name), or NOT \(name)", at: span)
    case (.integer, .text(let text)), (.real, .text(let text)):
      return .warning(
        .warnClass, "\(name) is a number: it never equals the text '\(text)'",
        remedy: "write the number without quotes", at: span)
    case (.text, .text(let text)):
      guard let example = Self.example(of: conversion), !fits(text, example) else {
        return nil
      }
      return .warning(
        .warnTimeFormat,
        "'\(text)' has another form than \(name), and texts are compared character by character",
        remedy: "write it like '\(example)'", at: span)
    default: return nil
    }
  }

  /// A moment in the form that the column's values have.
  private static func example(of conversion: ValueConversion) -> String? {
    switch conversion {
    case .date: "2026-03-01"
    case .timestamp(let format): moment(format)
    case .instant(let format): moment(format) + "Z"
    default: nil
    }
  }

  private static func moment(_ format: ValueConversion.DateTimeFormat) -> String {
    switch format {
    case .postgres: "2026-03-01 08:30:00"
    case .iso(let digits):
      "2026-03-01T08:30:00"
        + (digits == 0 ? "" : "." + String(repeating: "0", count: digits))
    }
  }

  /// Whether the text has digits and signs where the example has them. A shorter one is a good bound of a
  /// range; PostgreSQL's own form has as many digits of a second as there are.
  private func fits(_ text: String, _ example: String) -> Bool {
    let form = example.map { $0.isNumber ? "0" : $0 }
    let given = text.map { $0.isNumber ? "0" : $0 }
    let isEquality = comparison == .equal || comparison == .notEqual
    if form.elementsEqual(given) || !isEquality && form.starts(with: given) { return true }
    guard example.contains(" "), given.count > form.count || given.last == form.last else {
      return false
    }
    let seconds = form.prefix(19)
    let rest = given.dropFirst(19)
    let zone = example.hasSuffix("Z") ? "Z" : ""
    return given.prefix(19).elementsEqual(seconds)
      && String(rest).wholeMatch(of: /(\.0{1,6})?(Z?)/)?.2 == zone[...]
  }
}
