import SyncProtocol
import Testing

/// Stamps as microseconds, beside what `date -u -d @…` says of the same moments.
@Suite struct StampTests {
  private static let pairs: [(String, Int64)] = [
    ("1970-01-01T00:00:00.000000Z", 0),
    ("1970-01-01T00:00:00.000001Z", 1),
    ("1969-12-31T23:59:59.999999Z", -1),
    ("2000-02-29T12:00:00.000000Z", 951_825_600_000_000),
    ("2000-03-01T00:00:00.000000Z", 951_868_800_000_000),
    ("1900-02-28T23:59:59.000000Z", -2_203_891_201_000_000),
    ("1900-03-01T00:00:00.000000Z", -2_203_891_200_000_000),
    ("2026-11-30T02:05:11.123456Z", 1_796_004_311_123_456),
    ("2100-02-28T00:00:00.000000Z", 4_107_456_000_000_000),
    ("0001-01-01T00:00:00.000000Z", -62_135_596_800_000_000),
    ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
  ]

  @Test(arguments: pairs)
  func `a stamp and its microseconds`(stamp: String, microseconds: Int64) {
    #expect(Stamp.microseconds(stamp) == microseconds)
    #expect(Stamp.text(microseconds: microseconds) == stamp)
  }

  @Test func `every day from 1890 to 2000 follows the one before`() {
    let day: Int64 = 86_400_000_000
    var moment: Int64 = -2_524_521_600_000_000
    var last = ""
    for _ in 0..<40_200 {
      let text = Stamp.text(microseconds: moment)
      #expect(text > last)
      guard Stamp.microseconds(text) == moment else {
        Issue.record("\(text) is not \(moment)")
        return
      }
      last = text
      moment += day
    }
  }

  @Test(arguments: [
    "", "2026-11-30", "2026-11-30T02:05:11Z", "2026-11-30T02:05:11.123Z",
    "2026-11-30 02:05:11.123456Z", "2026-11-30T02:05:11.123456", "2026-13-01T00:00:00.000000Z",
    "2026-00-01T00:00:00.000000Z", "2026-04-31T00:00:00.000000Z", "2026-02-29T00:00:00.000000Z",
    "1900-02-29T00:00:00.000000Z", "2026-01-00T00:00:00.000000Z", "2026-01-01T24:00:00.000000Z",
    "2026-01-01T00:60:00.000000Z", "2026-01-01T00:00:60.000000Z", "0000-01-01T00:00:00.000000Z",
    "２026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.00000éZ", "-026-01-01T00:00:00.000000Z",
    "2026-01-01T00:00:00.000000Z ", "2026-01-01T00:00:00.000000\u{0}",
  ])
  func `what is no stamp has no microseconds`(text: String) {
    #expect(Stamp.microseconds(text) == nil)
  }
}
