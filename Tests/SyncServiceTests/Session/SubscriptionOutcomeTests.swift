import BucketStorage
import SyncProtocol
import Testing

@testable import SyncService

@Suite struct SubscriptionOutcomeTests {
  private let streams = [
    GrantedStream(name: "lists", isDefault: true), GrantedStream(name: "notes", isDefault: false),
  ]

  private func outcome(
    _ names: [String], faults: [SubscriptionFault] = [], defaults: Bool = true
  ) -> [StreamState] {
    SubscriptionOutcome.streams(
      of: names.map { StreamSubscription(stream: $0) }, includeDefaults: defaults, among: streams,
      faults: faults)
  }

  @Test func `default streams and those asked for are told, in the rules' order`() {
    #expect(outcome([]) == [StreamState(name: "lists", isDefault: true)])
    #expect(outcome([], defaults: false) == [])
    #expect(
      outcome(["notes", "lists", "notes"], defaults: false) == [
        StreamState(name: "lists", isDefault: false), StreamState(name: "notes", isDefault: false),
      ])
  }

  @Test func `a name that is no stream is told with the nearest one`() {
    let states = outcome(["nots", "notes", "nots", "zzz"], defaults: false)
    #expect(states.map(\.name) == ["notes", "nots", "zzz"])
    #expect(states.map { $0.errors.map(\.subscription) } == [[], [0, 2], [3]])
    #expect(states[1].errors.first?.code == "SLUICE_STREAM_UNKNOWN")
    #expect(states[1].errors.first?.message == "there is no stream nots; did you mean notes?")
    #expect(states[2].errors.first?.message == "there is no stream zzz")
    // Two texts that look alike are two names.
    #expect(outcome(["e\u{301}", "\u{e9}"], defaults: false).count == 2)
  }

  @Test func `a value that cannot be used is told for its subscription`() {
    let faults = [
      SubscriptionFault(stream: "lists", place: nil, message: "a"),
      SubscriptionFault(stream: "notes", place: 0, message: "b"),
    ]
    #expect(
      outcome(["notes"], faults: faults) == [
        StreamState(
          name: "lists", isDefault: true,
          errors: [SubscriptionError(subscription: nil, code: "SLUICE_STREAM_VALUE", message: "a")]),
        StreamState(
          name: "notes", isDefault: false,
          errors: [SubscriptionError(subscription: 0, code: "SLUICE_STREAM_VALUE", message: "b")]),
      ])
  }
}
