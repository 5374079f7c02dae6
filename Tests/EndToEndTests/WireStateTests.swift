import Testing

/// The reference client notices what it is there to notice.
@Suite struct WireStateTests {
  private let opening = [
    #"{"checkpoint":{"tick":7,"stamp":"2026-01-01T00:00:00.000000Z","id":32,"full":true,"buckets":[{"name":"a[]","priority":3,"count":1,"digest":"00000000000000ff","start":32,"reset":false}],"removed":[],"acks":[]}}"#,
    #"{"rows":{"bucket":"a[]","ops":[["t","1","2026-01-01T00:00:00.000000Z",17,"00000000000000ff",{"id":1,"x":2.0,"y":null}]],"next":"2026-01-01T00:00:00.000000Z,17","more":false}}"#,
    #"{"complete":{"tick":7,"priority":null}}"#,
  ]

  private func play(_ lines: [String], into state: inout WireState) throws {
    for line in lines { _ = try state.receive(Array(line.utf8)) }
  }

  @Test("rows are shown at the complete line and not before, and positions name it")
  func complete() throws {
    var state = WireState()
    #expect(state.beginConnection(keepingStaged: true) == [:])
    try play(Array(opening[..<2]), into: &state)
    #expect(state.content == [:])
    try play([opening[2]], into: &state)
    #expect(state.content == ["t": ["1": ["x": .number("2"), "y": .null]]])
    #expect(state.violations == [])
    #expect(
      state.beginConnection(keepingStaged: false) == ["a[]": "2026-01-01T00:00:00.000000Z,32,32"])
  }

  @Test(
    "inside a download the position is the last op's, or the last checkpoint's when it was dropped")
  func interrupted() throws {
    var state = WireState()
    _ = state.beginConnection(keepingStaged: true)
    try play(Array(opening[..<2]), into: &state)
    #expect(
      state.beginConnection(keepingStaged: true) == ["a[]": "2026-01-01T00:00:00.000000Z,17,32"])
    #expect(state.beginConnection(keepingStaged: false) == [:])
  }

  @Test("a digest or a count that does not match is a violation", arguments: [0, 1])
  func digest(which: Int) throws {
    var state = WireState()
    _ = state.beginConnection(keepingStaged: true)
    let (from, to) = [("ff\",\"start", "fe\",\"start"), ("\"count\":1", "\"count\":2")][which]
    try play([opening[0].replacing(from, with: to)] + opening[1...], into: &state)
    #expect(state.violations.count == 1)
  }

  @Test("ops out of order, boundary ids, unannounced buckets and lost ticks are violations")
  func order() throws {
    for (index, from, to) in [
      (1, ",17,\"00", ",16,\"00"), (1, "\"bucket\":\"a[]\"", "\"bucket\":\"b[]\""),
      (0, "\"full\":true", "\"full\":false"), (1, "\"t\",\"1\"", "\"t\",1"),
    ] {
      var state = WireState()
      _ = state.beginConnection(keepingStaged: true)
      var lines = opening
      lines[index] = lines[index].replacing(from, with: to)
      try play(lines, into: &state)
      #expect(state.violations != [], "\(to)")
    }
    var state = WireState()
    _ = state.beginConnection(keepingStaged: true)
    try play([opening[0], opening[1], opening[1], opening[2]], into: &state)
    #expect(state.violations.count == 1)
  }

  @Test("a bucket that is no longer listed goes, and of two versions of a row the newer shows")
  func overlap() throws {
    var state = WireState()
    _ = state.beginConnection(keepingStaged: true)
    try play(opening, into: &state)
    try play(
      [
        #"{"checkpoint":{"tick":8,"stamp":"2026-01-01T00:00:01.000000Z","id":48,"full":false,"buckets":[{"name":"b[]","priority":3,"count":1,"digest":"0000000000000001","start":48,"reset":false}],"removed":[],"acks":[]}}"#,
        #"{"rows":{"bucket":"b[]","ops":[["t","1","2026-01-01T00:00:01.000000Z",33,"0000000000000001",{"x":3}]],"next":"2026-01-01T00:00:01.000000Z,33","more":false}}"#,
        #"{"complete":{"tick":8,"priority":null}}"#,
      ], into: &state)
    #expect(state.content == ["t": ["1": ["x": .number("3")]]])
    try play(
      [
        #"{"checkpoint":{"tick":9,"stamp":"2026-01-01T00:00:02.000000Z","id":64,"full":false,"buckets":[],"removed":["b[]"],"acks":[]}}"#,
        #"{"complete":{"tick":9,"priority":null}}"#,
      ], into: &state)
    #expect(state.content == ["t": ["1": ["x": .number("2"), "y": .null]]])
    #expect(state.violations == [])
  }
}
