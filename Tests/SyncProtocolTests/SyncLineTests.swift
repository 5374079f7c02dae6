import Testing

@testable import SyncProtocol

@Suite("Lines")
struct SyncLineTests {
  private func text(_ line: [UInt8]) -> String { String(decoding: line, as: UTF8.self) }

  @Test("a checkpoint is written in the published form and read back")
  func checkpoint() throws {
    let line = CheckpointLine(
      tick: 912, stamp: "2026-11-30T02:05:11.123456Z", id: 184_480, full: true,
      buckets: [
        BucketState(
          name: "by_list[\"a1\"]", priority: 3, count: 120, digest: 0x00ff_0000_0000_abcd,
          start: 184_000, reset: false)
      ], removed: ["old[]"], acks: ["7"])
    #expect(
      text(line.encodedLine()) == """
        {"checkpoint":{"tick":912,"stamp":"2026-11-30T02:05:11.123456Z","id":184480,"full":true,"buckets":[{"name":"by_list[\\"a1\\"]","priority":3,"count":120,"digest":"00ff00000000abcd","start":184000,"reset":false}],"removed":["old[]"],"acks":["7"]}}

        """)
    #expect(try SyncLine(decoding: line.encodedLine()) == .checkpoint(line))
  }

  @Test("a checkpoint tells what came of subscriptions")
  func streams() throws {
    var line = CheckpointLine(
      tick: 1, stamp: "2026-11-30T02:05:11.123456Z", id: 16, full: true,
      buckets: [
        BucketState(
          name: "lists|0[\"a1\"]", priority: 0, count: 0, digest: 0, start: 16, reset: false,
          subscriptions: [0, 2])
      ],
      streams: [
        StreamState(name: "lists", isDefault: true),
        StreamState(
          name: "li\"sts\u{2028}", isDefault: false,
          errors: [
            SubscriptionError(subscription: 1, code: "SLUICE_STREAM_UNKNOWN", message: "no \"it\""),
            SubscriptionError(subscription: nil, code: "SLUICE_STREAM_VALUE", message: "m"),
          ]),
      ])
    #expect(
      text(line.encodedLine()) == """
        {"checkpoint":{"tick":1,"stamp":"2026-11-30T02:05:11.123456Z","id":16,"full":true,"buckets":[{"name":"lists|0[\\"a1\\"]","priority":0,"count":0,"digest":"0000000000000000","start":16,"reset":false,"subscriptions":[0,2]}],"removed":[],"acks":[],"streams":[{"name":"lists","is_default":true,"errors":[]},{"name":"li\\"sts\\u2028","is_default":false,"errors":[{"subscription":1,"code":"SLUICE_STREAM_UNKNOWN","message":"no \\"it\\""},{"subscription":null,"code":"SLUICE_STREAM_VALUE","message":"m"}]}]}}

        """)
    #expect(try SyncLine(decoding: line.encodedLine()) == .checkpoint(line))
    // None left is told, as different from nothing new.
    for streams in [nil, []] as [[StreamState]?] {
      line.streams = streams
      #expect(try SyncLine(decoding: line.encodedLine()) == .checkpoint(line))
    }
    for wrong in [
      "{}", "1", "{\"name\":1}", "{\"name\":\"a\",\"errors\":[{\"subscription\":0}]}",
      "{\"name\":\"a\",\"errors\":[{\"subscription\":\"0\",\"code\":\"\",\"message\":\"\"}]}",
    ] {
      let whole = text(line.encodedLine()).replacing(
        "\"streams\":[]", with: "\"streams\":[\(wrong)]")
      #expect(whole.contains(wrong))
      #expect(throws: ProtocolError.self) { try SyncLine(decoding: Array(whole.utf8)) }
    }
  }

  @Test("the small lines are read back as they were written")
  func small() throws {
    #expect(
      text(CompleteLine(tick: 912).encodedLine())
        == "{\"complete\":{\"tick\":912,\"priority\":null}}\n")
    for line in [CompleteLine(tick: 1), CompleteLine(tick: .max, priority: 1)] {
      #expect(try SyncLine(decoding: line.encodedLine()) == .complete(line))
    }
    let keepalive = KeepaliveLine(tokenExpiresIn: 298)
    #expect(text(keepalive.encodedLine()) == "{\"keepalive\":{\"token_expires_in\":298}}\n")
    #expect(try SyncLine(decoding: keepalive.encodedLine()) == .keepalive(keepalive))
    let error = ErrorBody(
      code: "SLUICE_X", message: "Line\nbreak \u{85}\u{2028}\u{2029}", hint: "h")
    #expect(error.encodedLine().filter { $0 == 0x0A }.count == 1)
    #expect(
      text(error.encodedLine()).contains("\\n") && text(error.encodedLine()).contains("\\u2028"))
    #expect(try SyncLine(decoding: error.encodedLine()) == .error(error))
    #expect(ErrorBody(body: error.encodedLine()) == error)
    #expect(ErrorBody(body: Array("<html>".utf8)) == nil)
    #expect(try SyncLine(decoding: Array("{\"later\":[1]}".utf8)) == .unknown("later"))
  }

  @Test("a schema is read back, and its hash follows its tables")
  func schema() throws {
    let tables = [
      PublishedTable(
        name: "to\"dos",
        columns: [
          PublishedColumn(name: "title", type: .text), PublishedColumn(name: "n", type: .integer),
          PublishedColumn(name: "r", type: .real), PublishedColumn(name: "x", type: .any),
        ])
    ]
    let schema = PublishedSchema(tables: tables)
    #expect(try SyncLine(decoding: schema.encodedLine()) == .schema(schema))
    #expect(schema.hash.count == 16)
    #expect(PublishedSchema(tables: []).hash != schema.hash)
  }

  @Test("rows are written in the published form and read back")
  func rows() throws {
    let operations = [
      RowOperation(
        table: "todos", objectID: "t\"1\\\u{7F}\u{E9}", stamp: "2026-11-30T02:05:11.123456Z",
        id: 184_468, checksum: 0xff, data: "{\"a\":\n\"b\u{2028}\u{85}\u{E9}\"}", subkey: "k\t"),
      RowOperation(
        table: "todos", objectID: "t2", stamp: "2026-11-30T02:05:11.123456Z", id: 184_469,
        checksum: 0, data: nil),
    ]
    var encoder = RowsLineEncoder(bucket: "b[\"1\"]")
    for operation in operations { encoder.append(operation) }
    #expect(encoder.count == 2)
    let next = SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 184_469)
    let line = encoder.finish(next: next, more: true)
    #expect(
      text(line) == """
        {"rows":{"bucket":"b[\\"1\\"]","ops":[["todos","t\\"1\\\\\u{7F}\u{E9}","2026-11-30T02:05:11.123456Z",184468,"00000000000000ff",{"a": "b\\u2028\\u0085\u{E9}"},"k\\t"],["todos","t2","2026-11-30T02:05:11.123456Z",184469,"0",null]],"next":"2026-11-30T02:05:11.123456Z,184469","more":true}}

        """)
    #expect(try SyncLine(decoding: line) == .rows)
    var read: [RowOperation] = []
    let header = try RowsLineDecoder.decode(Array(line.dropLast())) { operation in
      read.append(
        RowOperation(
          table: operation.table.string, objectID: operation.objectID.string,
          stamp: operation.stamp.string, id: operation.id, checksum: operation.checksum,
          data: operation.data.map { String(decoding: $0, as: UTF8.self) },
          subkey: operation.subkey?.string ?? ""))
    }
    #expect(header == .init(bucket: "b[\"1\"]", operations: 2, next: next, more: true))
    #expect(read[1] == operations[1])
    #expect(read[0].objectID == operations[0].objectID && read[0].subkey == "k\t")
    #expect(read[0].data == "{\"a\": \"b\\u2028\\u0085\u{E9}\"}")
  }

  @Test("the page form is the same without the outer key")
  func page() {
    let encoder = RowsLineEncoder(bucket: "b[]", form: .page)
    let next = SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 16)
    #expect(
      text(encoder.finish(next: next, more: false))
        == "{\"bucket\":\"b[]\",\"ops\":[],\"next\":\"2026-11-30T02:05:11.123456Z,16\",\"more\":false}\n"
    )
  }

  @Test("no cut or change of a line of rows makes it trap")
  func mutations() throws {
    var encoder = RowsLineEncoder(bucket: "b")
    encoder.append(
      RowOperation(
        table: "t", objectID: "\u{E9}", stamp: "s", id: 1, checksum: 1,
        data: "{\"a\":[1,2.5,\"\\u00e9\\ud83d\",{}]}", subkey: "k"))
    let whole = encoder.finish(
      next: SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: 1), more: false)
    func read(_ line: [UInt8]) throws {
      _ = try RowsLineDecoder.decode(line) { operation in
        _ = operation.objectID.string
        if let data = operation.data {
          var cursor = JSONCursor(data, direction: .line)
          try cursor.readObject { (_, cursor) throws(ProtocolError) in
            switch try cursor.readValue() {
            case .text(let text): _ = text.string
            case .number(let number): _ = number.double
            default: break
            }
          }
        }
      }
    }
    try read(whole)
    for length in 0..<whole.count - 1 {
      #expect(throws: ProtocolError.self) { try read(Array(whole.prefix(length))) }
    }
    for index in whole.indices {
      for byte in UInt8.min...UInt8.max {
        var changed = whole
        changed[index] = byte
        try? read(changed)
      }
    }
  }

  @Test("numbers are read exactly")
  func numbers() throws {
    func number(_ text: String) throws -> (Int64?, Double) {
      try Array(text.utf8).withUnsafeBufferPointer { bytes in
        var cursor = JSONCursor(bytes, direction: .line)
        let view = try cursor.readNumber()
        return (view.int64, view.double)
      }
    }
    #expect(try number("9223372036854775807").0 == .max)
    #expect(try number("-9223372036854775808").0 == .min)
    #expect(try number("9223372036854775808").0 == nil)
    #expect(try number("9223372036854775808").1 == 9_223_372_036_854_775_808.0)
    #expect(try number("0.1").1 == 0.1)
    #expect(try number("-1.5e-300").1 == -1.5e-300)
    #expect(try number("1e400").1 == .infinity)
  }

  @Test("lines come out whole, whatever the chunks", arguments: [1, 2, 3, 7, 64, 1000])
  func splitter(chunk: Int) throws {
    let sent = (0..<50).map { String(repeating: "x", count: $0 * 7 % 40 + 1) + "\u{E9}" }
    let bytes = Array((sent.joined(separator: "\n") + "\n\nrest").utf8)
    var splitter = LineSplitter()
    var received: [String] = []
    for start in stride(from: 0, to: bytes.count, by: chunk) {
      splitter.append(bytes[start..<min(start + chunk, bytes.count)])
      while let line = try splitter.next() { received.append(text(line)) }
    }
    #expect(received == sent)
    #expect(splitter.pendingBytes == 4)
  }

  @Test("what a row becomes in its line is at most three times as long")
  func longestLine() throws {
    let (row, limit) = (64 << 10, 3 * (64 << 10) + 1000)
    for character in ["x", "\u{85}", "\u{2028}", "\u{2029}", "é", "\u{1F6A7}"] {
      let text = String(repeating: character, count: row / character.utf8.count)
      var encoder = RowsLineEncoder(bucket: "b[]")
      encoder.append(
        RowOperation(
          table: "t", objectID: "1", stamp: "2026-11-30T02:05:11.123456Z", id: .max,
          checksum: .max, data: "{\"v\":\"\(text)\"}"))
      let line = encoder.finish(
        next: SyncPosition(stamp: "2026-11-30T02:05:11.123456Z", id: .max), more: false)
      #expect(line.count <= limit)
      var splitter = LineSplitter(limit: limit)
      splitter.append(line)
      #expect(try splitter.next()?.count == line.count - 1)
    }
  }

  @Test("an endless line is refused")
  func endlessLine() throws {
    var splitter = LineSplitter(limit: 100)
    splitter.append([UInt8](repeating: 0x61, count: 101))
    #expect(throws: ProtocolError.self) { try splitter.next() }
  }
}
