/// Stamps, `YYYY-MM-DDTHH:MM:SS.ffffffZ`, as microseconds since 1970 and back.
package enum Stamp {
  /// The microseconds since 1970-01-01 of a stamp; nil if it is not one.
  package static func microseconds(_ stamp: String) -> Int64? {
    guard SyncPosition.isStamp(stamp) else { return nil }
    let digits = stamp.utf8.filter { $0 >= 0x30 && $0 <= 0x39 }.map { Int64($0) - 0x30 }
    func number(_ range: Range<Int>) -> Int64 { digits[range].reduce(0) { $0 * 10 + $1 } }
    let seconds = number(8..<10) * 3600 + number(10..<12) * 60 + number(12..<14)
    let day = days(year: number(0..<4), month: number(4..<6), day: number(6..<8))
    return (day * 86_400 + seconds) * 1_000_000 + number(14..<20)
  }

  /// The stamp of a moment in the years 1 to 9999.
  package static func text(microseconds: Int64) -> String {
    let seconds = microseconds.flooredDividing(by: 1_000_000)
    let fraction = microseconds - seconds * 1_000_000
    let day = seconds.flooredDividing(by: 86_400)
    let second = seconds - day * 86_400
    let (year, month, date) = civil(day)
    func padded(_ value: Int64, _ width: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
    }
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(date, 2))T\(padded(second / 3600, 2)):"
      + "\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2)).\(padded(fraction, 6))Z"
  }

  // Counting years from March puts the leap day last; 400 years have 146,097 days.

  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = year.flooredDividing(by: 400)
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let days = days + 719_468
    let era = days.flooredDividing(by: 146_097)
    let dayOfEra = days - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * shifted + 2) / 5 + 1)
  }
}

extension Int64 {
  fileprivate func flooredDividing(by divisor: Int64) -> Int64 {
    let quotient = self / divisor
    return self % divisor < 0 ? quotient - 1 : quotient
  }
}
