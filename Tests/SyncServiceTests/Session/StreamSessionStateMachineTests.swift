import SyncProtocol
import Testing

@testable import SyncService

/// What a stream announces and asks for, as tables of facts: no clock, no database, no socket.
@Suite struct StreamSessionStateMachineTests {
  typealias Machine = StreamSession.StateMachine

  private func tick(_ number: Int64) -> TickFacts {
    TickFacts(number: number, stamp: "2026-01-01T00:00:00.000000Z", boundary: number * 16)
  }

  private func bucket(
    _ name: BucketName, last: Int64, floor: Int64 = 0, priority: Int = 3
  ) -> BucketFacts {
    BucketFacts(
      name: name, rowID: last == 0 ? nil : 1, priority: priority, count: last == 0 ? 0 : 1,
      lastID: last, floor: floor)
  }

  private func page(
    _ last: Int64?, more: Bool = false, head: Int64, bucketLast: Int64, floor: Int64 = 0
  ) -> PageFacts {
    PageFacts(
      lastEntryID: last, hasMore: more, headTick: head, bucketLastID: bucketLast, floor: floor)
  }

  private func load(
    _ name: BucketName, after: Int64, through: Int64, start: Int64
  ) -> Machine.Step {
    .load(
      Machine.PageRequest(
        bucket: name, rowID: 1, after: after, through: through, start: start))
  }

  @Test func `a new client gets every bucket from nothing, then a complete`() {
    var machine = Machine(claims: [:])
    let facts = bucket("a[]", last: 21)
    #expect(
      machine.announce(tick(2), buckets: [facts])
        == .send(
          Announcement(
            tick: tick(2), isFull: true,
            buckets: [BucketAnnouncement(facts: facts, start: 32, reset: false)])))
    #expect(machine.next() == load("a[]", after: 0, through: 32, start: 32))
    #expect(machine.page(page(18, more: true, head: 2, bucketLast: 21)) == .send)
    #expect(machine.next() == load("a[]", after: 18, through: 32, start: 32))
    #expect(machine.page(page(21, head: 2, bucketLast: 21)) == .send)
    #expect(machine.next() == .complete)
    #expect(machine.next() == .settle)
    #expect(machine.settle(followingSince: 2) == .follow)
    #expect(machine.settle(followingSince: 3) == .announceAgain)
  }

  @Test func `a client that holds everything is told so without a page`() {
    var machine = Machine(claims: ["a[]": BucketClaim(id: 32, start: 16, survives: true)])
    let facts = bucket("a[]", last: 21)
    #expect(
      machine.announce(tick(4), buckets: [facts])
        == .send(
          Announcement(
            tick: tick(4), isFull: true,
            buckets: [BucketAnnouncement(facts: facts, start: 16, reset: false)])))
    #expect(machine.next() == .complete)
  }

  @Test func `no bucket at all is a checkpoint too`() {
    var machine = Machine(claims: ["gone[]": BucketClaim(id: 16, start: 16, survives: true)])
    #expect(
      machine.announce(tick(4), buckets: [])
        == .send(Announcement(tick: tick(4), isFull: true, buckets: [])))
    #expect(machine.next() == .complete)
  }

  @Test(
    "a position that cannot be continued from resets its bucket alone",
    arguments: [
      (BucketClaim(id: 32, start: 16, survives: false), Int64(0), "a jump or another database"),
      (BucketClaim(id: 32, start: 16, survives: true), 48, "below the floor"),
      (BucketClaim(id: 96, start: 16, survives: true), 0, "beyond the head"),
      (BucketClaim(id: 32, start: 96, survives: true), 0, "a start beyond the head"),
    ])
  func reset(claim: BucketClaim, floor: Int64, why: String) {
    var machine = Machine(
      claims: ["a[]": claim, "b[]": BucketClaim(id: 32, start: 16, survives: true)])
    let lost = bucket("a[]", last: 50, floor: floor)
    let kept = bucket("b[]", last: 33)
    #expect(
      machine.announce(tick(4), buckets: [lost, kept])
        == .send(
          Announcement(
            tick: tick(4), isFull: true,
            buckets: [
              BucketAnnouncement(facts: lost, start: 64, reset: true),
              BucketAnnouncement(facts: kept, start: 16, reset: false),
            ])))
    #expect(machine.next() == load("a[]", after: 0, through: 64, start: 64))
    #expect(machine.page(page(50, head: 4, bucketLast: 50)) == .send)
    #expect(machine.next() == load("b[]", after: 32, through: 64, start: 16))
  }

  @Test func `an interrupted first download goes on, since its start is above the floor`() {
    var machine = Machine(claims: ["a[]": BucketClaim(id: 3, start: 64, survives: true)])
    _ = machine.announce(tick(5), buckets: [bucket("a[]", last: 70, floor: 64)])
    #expect(machine.next() == load("a[]", after: 3, through: 80, start: 64))
  }

  @Test func `a bucket that changed while it was read keeps the checkpoint from completing`() {
    var machine = Machine(claims: [:])
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 21), bucket("b[]", last: 22)])
    _ = machine.next()
    #expect(machine.page(page(20, head: 3, bucketLast: 35)) == .send)
    _ = machine.next()
    #expect(machine.page(page(22, head: 3, bucketLast: 22)) == .send)
    #expect(machine.next() == .settle)
    #expect(!machine.isComplete)
  }

  @Test func `a second round announces and reads only what differs`() {
    var machine = Machine(claims: [:])
    let still = bucket("b[]", last: 22)
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 21), still])
    _ = machine.next()
    _ = machine.page(page(20, head: 3, bucketLast: 35))
    _ = machine.next()
    _ = machine.page(page(22, head: 3, bucketLast: 22))
    _ = machine.next()
    let moved = bucket("a[]", last: 35)
    #expect(
      machine.announce(tick(3), buckets: [moved, still])
        == .send(
          Announcement(
            tick: tick(3), isFull: false,
            buckets: [BucketAnnouncement(facts: moved, start: 32, reset: false)])))
    #expect(machine.next() == load("a[]", after: 32, through: 48, start: 32))
    #expect(machine.page(page(35, head: 3, bucketLast: 35)) == .send)
    #expect(machine.next() == .complete)
  }

  @Test func `the live feed completes what the pages lacked, but not before their snapshot`() {
    var machine = Machine(claims: [:])
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 21)])
    _ = machine.next()
    _ = machine.page(page(nil, head: 4, bucketLast: 50))
    #expect(machine.next() == .settle)
    #expect(machine.settle(followingSince: 2) == .follow)
    let third = bucket("a[]", last: 35)
    #expect(
      machine.batch(BatchFacts(after: 2, tick: tick(3), buckets: [third]))
        == .send(
          Announcement(
            tick: tick(3), isFull: false,
            buckets: [BucketAnnouncement(facts: third, start: 32, reset: false)]),
          complete: false))
    #expect(!machine.isComplete)
    let fourth = bucket("a[]", last: 50)
    #expect(
      machine.batch(BatchFacts(after: 3, tick: tick(4), buckets: [fourth]))
        == .send(
          Announcement(
            tick: tick(4), isFull: false,
            buckets: [BucketAnnouncement(facts: fourth, start: 32, reset: false)]),
          complete: true))
    #expect(machine.isComplete)
  }

  @Test func `a page that was read late lacks entries, though it holds the announced last one`() {
    var machine = Machine(claims: ["b[]": BucketClaim(id: 32, start: 16, survives: true)])
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 21), bucket("b[]", last: 17)])
    #expect(machine.next() == load("a[]", after: 0, through: 32, start: 32))
    // Of a[] something before 21 was replaced by tick 4, which the page was read after.
    #expect(machine.page(page(21, more: true, head: 4, bucketLast: 50)) == .send)
    #expect(machine.next() == .settle)
    #expect(machine.settle(followingSince: 2) == .follow)
    let third = BatchFacts(after: 2, tick: tick(3), buckets: [bucket("b[]", last: 33)])
    guard case .send(_, complete: false) = machine.batch(third) else {
      Issue.record("the client would be told that it holds tick 3, and lacks entries of a[]")
      return
    }
    let fourth = BatchFacts(after: 3, tick: tick(4), buckets: [bucket("a[]", last: 50)])
    guard case .send(_, complete: true) = machine.batch(fourth) else {
      Issue.record("tick 4 brings what the page lacked")
      return
    }
  }

  @Test func `deletions that were forgotten during the download start the bucket over`() {
    var machine = Machine(claims: ["a[]": BucketClaim(id: 16, start: 16, survives: true)])
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 21)])
    _ = machine.next()
    #expect(
      machine.page(page(21, head: 3, bucketLast: 40, floor: 40)) == .announceAgain)
    let facts = bucket("a[]", last: 40, floor: 40)
    #expect(
      machine.announce(tick(3), buckets: [facts])
        == .send(
          Announcement(
            tick: tick(3), isFull: false,
            buckets: [BucketAnnouncement(facts: facts, start: 48, reset: true)])))
    #expect(machine.next() == load("a[]", after: 0, through: 48, start: 48))
  }

  @Test func `urgent buckets come first and are completed first`() {
    var machine = Machine(claims: [:])
    let later = bucket("a[]", last: 21, priority: 3)
    let urgent = bucket("z[]", last: 22, priority: 1)
    #expect(
      machine.announce(tick(2), buckets: [later, urgent])
        == .send(
          Announcement(
            tick: tick(2), isFull: true,
            buckets: [
              BucketAnnouncement(facts: urgent, start: 32, reset: false),
              BucketAnnouncement(facts: later, start: 32, reset: false),
            ])))
    #expect(machine.next() == load("z[]", after: 0, through: 32, start: 32))
    _ = machine.page(page(22, head: 2, bucketLast: 22))
    #expect(machine.next() == .partial(1))
    #expect(machine.next() == load("a[]", after: 0, through: 32, start: 32))
    _ = machine.page(page(21, head: 2, bucketLast: 21))
    #expect(machine.next() == .complete)
  }

  @Test func `no partial complete after an urgent bucket that changed meanwhile`() {
    var machine = Machine(claims: [:])
    _ = machine.announce(
      tick(2),
      buckets: [bucket("a[]", last: 21), bucket("z[]", last: 22, priority: 1)])
    _ = machine.next()
    _ = machine.page(page(nil, head: 3, bucketLast: 40))
    #expect(machine.next() == load("a[]", after: 0, through: 32, start: 32))
  }

  @Test func `a bucket that is taken away and granted again is a new copy`() {
    var machine = Machine(claims: [:])
    let facts = bucket("a[]", last: 21)
    _ = machine.announce(tick(2), buckets: [facts])
    _ = machine.next()
    _ = machine.page(page(21, head: 2, bucketLast: 21))
    _ = machine.next()
    #expect(
      machine.announce(tick(3), buckets: [])
        == .send(
          Announcement(tick: tick(3), isFull: false, buckets: [], removed: ["a[]"])))
    #expect(machine.next() == .complete)
    #expect(
      machine.announce(tick(4), buckets: [facts])
        == .send(
          Announcement(
            tick: tick(4), isFull: false,
            buckets: [BucketAnnouncement(facts: facts, start: 64, reset: true)])))
    #expect(machine.next() == load("a[]", after: 0, through: 64, start: 64))
  }

  @Test func `asking again with the same answer says nothing`() {
    var machine = Machine(claims: [:])
    let facts = bucket("a[]", last: 0)
    _ = machine.announce(tick(2), buckets: [facts])
    #expect(machine.next() == .complete)
    #expect(machine.announce(tick(3), buckets: [facts]) == .nothingNew)
    #expect(machine.settle(followingSince: 2) == .follow)
  }

  @Test(
    "a batch is used only if it begins where the client stands",
    arguments: [
      (Int64(0), Int64(1), Machine.BatchAction.ignore),
      (1, 2, .ignore),
      (1, 3, .announceAgain),
    ])
  func batchBounds(after: Int64, number: Int64, action: Machine.BatchAction) {
    var machine = Machine(claims: [:])
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 0)])
    _ = machine.next()
    let changed = [bucket("a[]", last: number * 16 - 1)]
    #expect(
      machine.batch(BatchFacts(after: after, tick: tick(number), buckets: changed)) == action)
  }

  @Test func `nothing of a batch is sent when what may be seen has to be asked again`() {
    var machine = Machine(claims: [:])
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 0)])
    _ = machine.next()
    let batch = BatchFacts(
      after: 2, tick: tick(3), buckets: [bucket("a[]", last: 40)], asksAgain: true)
    #expect(machine.batch(batch) == .announceAgain)
  }

  @Test func `a batch of a rebuilt bucket starts its copy over`() {
    var machine = Machine(claims: [:])
    _ = machine.announce(tick(2), buckets: [bucket("a[]", last: 0)])
    _ = machine.next()
    let rebuilt = bucket("a[]", last: 47, floor: 48)
    #expect(
      machine.batch(BatchFacts(after: 2, tick: tick(3), buckets: [rebuilt])) == .announceAgain)
    #expect(
      machine.announce(tick(3), buckets: [rebuilt])
        == .send(
          Announcement(
            tick: tick(3), isFull: false,
            buckets: [BucketAnnouncement(facts: rebuilt, start: 48, reset: true)])))
  }

  @Test func `an older database ends the stream`() {
    var machine = Machine(claims: [:])
    _ = machine.announce(tick(5), buckets: [bucket("a[]", last: 70)])
    _ = machine.next()
    #expect(machine.page(page(70, head: 4, bucketLast: 70)) == .historyLost)
    #expect(machine.announce(tick(4), buckets: []) == .historyLost)
  }

  @Test func `what came of streams is told at first, and again when it changed`() {
    var machine = StreamSession.StateMachine(claims: [:])
    let fine = [StreamState(name: "s", isDefault: true)]
    #expect(
      machine.announce(tick(2), buckets: [], streams: fine)
        == .send(Announcement(tick: tick(2), isFull: true, buckets: [], streams: fine)))
    #expect(machine.next() == .complete)
    #expect(machine.announce(tick(3), buckets: [], streams: fine) == .nothingNew)
    let wrong = [
      StreamState(
        name: "s", isDefault: true,
        errors: [SubscriptionError(subscription: 0, code: "C", message: "m")])
    ]
    #expect(
      machine.announce(tick(4), buckets: [], streams: wrong)
        == .send(Announcement(tick: tick(4), isFull: false, buckets: [], streams: wrong)))
    #expect(machine.next() == .complete)
    #expect(
      machine.announce(tick(5), buckets: [])
        == .send(Announcement(tick: tick(5), isFull: false, buckets: [], streams: [])))
  }

  @Test func `the live feed keeps a bucket's priority and subscriptions`() {
    var machine = StreamSession.StateMachine(claims: [:])
    var facts = bucket("a[]", last: 0)
    facts.priority = 1
    facts.subscriptions = [0, 3]
    _ = machine.announce(tick(2), buckets: [facts])
    #expect(machine.next() == .complete)
    var changed = bucket("a[]", last: 33)
    changed.rowID = 1
    let action = machine.batch(BatchFacts(after: 2, tick: tick(3), buckets: [changed]))
    changed.priority = 1
    changed.subscriptions = [0, 3]
    #expect(
      action
        == .send(
          Announcement(
            tick: tick(3), isFull: false,
            buckets: [BucketAnnouncement(facts: changed, start: 32, reset: false)]),
          complete: true))
    // Another subscription that leads to the same bucket is told without its rows.
    changed.subscriptions = [0]
    #expect(
      machine.announce(tick(3), buckets: [changed])
        == .send(
          Announcement(
            tick: tick(3), isFull: false,
            buckets: [BucketAnnouncement(facts: changed, start: 32, reset: false)])))
    #expect(machine.next() == .complete)
  }
}
