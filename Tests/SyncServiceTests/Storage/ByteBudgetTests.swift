import Testing

@testable import SyncService

@Suite struct ByteBudgetTests {
  @Test func `what is lent comes back when nobody holds it any more`() {
    let budget = ByteBudget(10)
    var first = budget.lease(6)
    #expect(budget.free == 4)
    #expect(budget.lease(5) == nil)
    var second = budget.lease(4)
    #expect(budget.free == 0)
    first = nil
    second = nil
    #expect(first == nil && second == nil && budget.free == 10)
  }

  @Test func `what is larger than all of it is lent when nothing else is`() {
    let budget = ByteBudget(10)
    var small = budget.lease(1)
    #expect(budget.lease(50) == nil)
    small = nil
    #expect(small == nil)
    let large = budget.lease(50)
    #expect(large != nil)
    #expect(budget.lease(1) == nil)
    withExtendedLifetime(large) {}
  }

  @Test func `who waits is served in the order of arrival, and passed by nobody`() async {
    let budget = ByteBudget(10)
    var halves = [budget.lease(5), budget.lease(5)]
    let first = Task { await budget.lease(8, within: .seconds(20)) != nil }
    while budget.waitingCount < 1 { await Task.yield() }
    let second = Task { await budget.lease(3, within: .seconds(20)) != nil }
    while budget.waitingCount < 2 { await Task.yield() }
    halves.removeLast()
    #expect(budget.free == 5 && budget.waitingCount == 2)
    #expect(budget.lease(1) == nil)
    halves.removeLast()
    #expect(await first.value)
    #expect(await second.value)
    #expect(budget.free == 10)
  }

  @Test func `patience ends, and those behind are served`() async {
    let budget = ByteBudget(10)
    let held = budget.lease(5)
    async let large = budget.lease(10, within: .milliseconds(50))
    while budget.waitingCount < 1 { await Task.yield() }
    let small = await budget.lease(5, within: .seconds(20))
    #expect(small != nil)
    #expect(await large == nil)
    #expect(budget.waitingCount == 0)
    withExtendedLifetime(held) {}
  }

  @Test func `a wait ends with its task`() async {
    let budget = ByteBudget(1)
    let held = budget.lease(1)
    let task = Task { await budget.lease(1, within: .seconds(60)) == nil }
    while budget.waitingCount < 1 { await Task.yield() }
    task.cancel()
    #expect(await task.value)
    #expect(budget.waitingCount == 0)
    withExtendedLifetime(held) {}
  }
}
