import SyncService
import Testing

/// How many streams are let in.
@Suite struct AdmissionGateTests {
  @Test func `both bounds hold, and a place that is left can be taken again`() {
    let gate = AdmissionGate(limit: 3, startingLimit: 2)
    #expect(gate.enter() == nil)
    #expect(gate.enter() == nil)
    #expect(gate.enter() == .tooManyStarting)
    gate.started()
    #expect((gate.openCount, gate.startingCount) == (2, 1))
    #expect(gate.enter() == nil)
    // Both are reached: the one that lasts is told.
    #expect(gate.enter() == .tooManyStreams)
    gate.started()
    gate.started()
    #expect(gate.enter() == .tooManyStreams)
    gate.leave(hadStarted: true)
    #expect(gate.enter() == nil)
    #expect((gate.openCount, gate.startingCount) == (3, 1))
  }

  @Test func `whoever leaves before starting gives both places back`() {
    let gate = AdmissionGate(limit: 2, startingLimit: 1)
    for _ in 0..<10 {
      #expect(gate.enter() == nil)
      #expect(gate.enter() == .tooManyStarting)
      gate.leave(hadStarted: false)
    }
    #expect((gate.openCount, gate.startingCount) == (0, 0))
  }

  @Test func `nobody is let in after it stops, and those inside may leave`() {
    let gate = AdmissionGate(limit: 2, startingLimit: 2)
    #expect(gate.enter() == nil)
    gate.stop()
    #expect(gate.enter() == .stopping)
    gate.started()
    gate.leave(hadStarted: true)
    #expect(gate.enter() == .stopping)
    #expect((gate.openCount, gate.startingCount) == (0, 0))
  }

  @Test func `limits of zero let nobody in`() {
    #expect(AdmissionGate(limit: 0, startingLimit: 1).enter() == .tooManyStreams)
    #expect(AdmissionGate(limit: 1, startingLimit: 0).enter() == .tooManyStarting)
  }

  @Test func `from many tasks at once never more are inside than the limits say`() async {
    let gate = AdmissionGate(limit: 7, startingLimit: 3)
    await withTaskGroup(of: Int.self) { group in
      for number in 0..<8 {
        group.addTask {
          var worst = 0
          for round in 0..<2_000 {
            guard gate.enter() == nil else { continue }
            worst = max(worst, gate.startingCount > 3 || gate.openCount > 7 ? 1 : 0)
            let starts = (number + round) % 2 == 0
            if starts { gate.started() }
            gate.leave(hadStarted: starts)
          }
          return worst
        }
      }
      for await worst in group { #expect(worst == 0) }
    }
    #expect((gate.openCount, gate.startingCount) == (0, 0))
  }
}
