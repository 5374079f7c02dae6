import Testing

@testable import SyncProtocol

@Suite("Positions")
struct SyncPositionTests {
  @Test("a position is read back as it was written")
  func roundTrip() throws {
    let position = SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 184_467, start: 184_000)
    #expect(position.text == "2026-11-30T02:05:11.123456Z,184467,184000")
    #expect(try SyncPosition(parsing: position.text) == position)
    #expect(try SyncPosition(parsing: position.shortText).start == 0)
  }

  @Test(
    "the 29th of February exists in leap years only",
    arguments: [(2024, true), (2026, false), (2000, true), (1900, false)])
  func leapDays(year: Int, exists: Bool) {
    #expect(SyncPosition.isStamp("\(year)-02-29T00:00:00.000000Z") == exists)
  }

  @Test(
    "anything else is refused with a code",
    arguments: [
      "", ",", "5", "2026-11-30T02:05:11.123456Z", "2026-11-30T02:05:11.123456Z,",
      "2026-11-30T02:05:11.123456Z,-1", "2026-11-30T02:05:11.123456Z,+1",
      "2026-11-30T02:05:11.123456Z,01", "2026-11-30T02:05:11.123456Z, 1",
      "2026-11-30T02:05:11.123456Z,9223372036854775808", "2026-11-30T02:05:11.123456Z,1,2,3",
      "2026-11-30T02:05:11.123456Z,1,", "2026-11-30 02:05:11.123456Z,1",
      "2026-11-30T02:05:11.12345Z,1", "2026-13-30T02:05:11.123456Z,1",
      "2026-11-31T02:05:11.123456Z,1", "2026-11-30T24:05:11.123456Z,1",
      "0000-11-30T02:05:11.123456Z,1", "2026-11-30T02:05:11.123456Z,1\u{0}",
      "2026-11-30T02:05:11.123456Z,\u{661}", "'; drop table x --,1",
    ])
  func refused(text: String) {
    #expect { try SyncPosition(parsing: text) } throws: { error in
      (error as? ProtocolError)?.code == "SLUICE_REQUEST_POSITION"
    }
  }

  @Test("the largest id fits")
  func largest() throws {
    let position = try SyncPosition(parsing: "9999-12-31T23:59:59.999999Z,9223372036854775807,0")
    #expect(position.id == .max)
  }
}
