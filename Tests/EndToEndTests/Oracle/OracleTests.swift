import Foundation
import Synchronization
import TestSupport
import Testing

extension EndToEnd {
  /// Random worlds, random transactions, random kills; every checkpoint shown equals the rules applied to its snapshot.
  ///
  /// `SLUICE_TEST_SEED` replays a run, `SLUICE_TEST_SOAK_SECONDS` goes on with further seeds for that long.
  @Suite(.serialized) struct Oracle {
    static let environment = ProcessInfo.processInfo.environment

    @Test("every checkpoint that any replica shows equals the rules applied to one snapshot")
    func everyCheckpoint() async throws {
      let soak = Double(Self.environment["SLUICE_TEST_SOAK_SECONDS"] ?? "") ?? 0
      let deadline = Date.now + soak
      var seed =
        Self.environment["SLUICE_TEST_SEED"].flatMap { UInt64($0) }
        ?? UInt64.random(in: 1...999_999_999)
      var episodes = 0
      repeat {
        try await Episode(seed: seed).play(seconds: soak > 0 ? 40 : 25)
        seed += 1
        episodes += 1
      } while Date.now < deadline || (soak == 0 && episodes < 2)
    }
  }
}

/// One world from one seed, played for a while.
private struct Episode {
  let seed: UInt64
  let world: World
  private let random: SeededGenerator

  init(seed: UInt64) {
    self.seed = seed
    var random = SeededGenerator(seed: seed)
    world = World(using: &random)
    self.random = random
  }

  /// A replica with the checkpoints it showed and nobody has judged yet.
  private final class Watched: Sendable {
    let label: String
    let user: World.User
    let shown = Mutex<[(tick: Int, content: Content)]>([])
    let replay = Mutex(Replay())
    init(_ label: String, _ user: World.User) {
      self.label = label
      self.user = user
    }
  }

  func play(seconds: Double) async throws {
    FileHandle.standardError.write(Data("oracle: SLUICE_TEST_SEED=\(seed)\n".utf8))
    let schema =
      world.schema
      + "INSERT INTO markers SELECT n, 0 FROM generate_series(1, \(World.writers)) AS n;\n"
    var random = random
    let gateways = Int.random(in: 1...2, using: &random)
    try await Stage.set(schema: schema, rules: world.rules, gateways: gateways) { stage in
      let watched = (0..<5).map { Watched("wire\($0)", world.users[$0 % world.users.count]) }
      var replicas: [WireReplica] = []
      for each in watched {
        let coin = Mutex(SeededGenerator(seed: UInt64.random(in: 0...UInt64.max, using: &random)))
        replicas.append(
          try stage.replica(
            each.user.name, claims: ["tags": each.user.tags],
            onComplete: { tick, content in each.shown.withLock { $0.append((tick, content)) } },
            keepsStaged: { coin.withLock { Bool.random(using: &$0) } }))
      }
      let file = Watched("file", world.users[0])
      let copy = try stage.sqliteCopy(file.user.name, claims: ["tags": file.user.tags])
      try copy.start()
      for replica in replicas { replica.connect() }

      let writers = (1...World.writers).map { number in
        let seed = UInt64.random(in: 0...UInt64.max, using: &random)
        return Task { try await write(number, seed: seed, stage.source) }
      }
      var history = HistoryReader(source: stage.source)
      let end = Date.now + seconds
      var judged = 0
      while Date.now < end {
        await pause(Double.random(in: 0.3...1.2, using: &random))
        try await sample(copy, file)
        switch Int.random(in: 0...7, using: &random) {
        case 0:
          let gateway = stage.gateways.randomElement(using: &random) ?? stage.gateway
          await gateway.kill9()
          await pause(Double.random(in: 0...0.5, using: &random))
          try await gateway.start()
        case 1:
          await copy.kill9()
          try copy.start()
        case 2, 3:
          let replica = replicas.randomElement(using: &random) ?? replicas[0]
          replica.disconnect()
          await pause(Double.random(in: 0...0.3, using: &random))
          replica.connect()
        default: break
        }
        try await sample(copy, file)
        judged += try await judge(watched + [file], &history)
      }
      for writer in writers { writer.cancel() }
      for writer in writers { try await writer.value }

      // A last transaction that everyone has to show.
      try await stage.source.run("UPDATE markers SET version = version + 1")
      let last = try await stage.source.run(
        "SELECT string_agg(version::text, ',' ORDER BY id) FROM markers")
      for replica in replicas {
        try await replica.shows("the last transaction", within: 60) { shown($0, last) }
      }
      try await copy.shows("the last transaction", world.outputs, within: 60) { shown($0, last) }
      try await sample(copy, file)
      judged += try await judge(watched + [file], &history)
      #expect(stage.violations == [], "seed \(seed)")
      let verified = try await stage.verify()
      #expect(verified.status == 0, "seed \(seed): \(verified.output)")
      #expect(judged > 50, "seed \(seed): only \(judged) checkpoints were judged")
    }
  }

  private func shown(_ content: Content, _ versions: String) -> Bool {
    let markers = content["markers"] ?? [:]
    let numbers = (1...World.writers).map { markers["\($0)"]?["version"]?.description ?? "" }
    return numbers.joined(separator: ",") == versions
  }

  private func write(_ number: Int, seed: UInt64, _ source: Source) async throws {
    var writer = WorldWriter(number: number, world: world, random: SeededGenerator(seed: seed))
    while !Task.isCancelled {
      do {
        try await source.run(writer.transaction())
      } catch let failure as Source.Failed {
        // A deadlock or a lost race for a key rolls the transaction back; anything else is a mistake of the test.
        let expected = ["deadlock", "duplicate key", "violates foreign key"]
        guard expected.contains(where: failure.message.contains) else { throw failure }
      }
    }
  }

  private func sample(_ copy: SQLiteCopy, _ file: Watched) async throws {
    guard let content = try await copy.content(world.outputs), content["markers"] != nil else {
      return
    }
    file.shown.withLock { $0.append((0, content)) }
  }

  /// Compares what was shown since the last time with the log; the number of checkpoints compared.
  private func judge(_ watched: [Watched], _ history: inout HistoryReader) async throws -> Int {
    let taken = watched.map { each in
      each.shown.withLock { shown in
        defer { shown = [] }
        return shown
      }
    }
    let transactions = try await history.next()
    var judged = 0
    for (each, shown) in zip(watched, taken) {
      each.replay.withLock { replay in
        replay.add(transactions)
        for (tick, content) in shown {
          replay.advance(to: content["markers"] ?? [:])
          let wrong = differences(
            shown: content, expected: world.expected(for: each.user, in: replay.state))
          #expect(
            wrong == [], "seed \(seed), \(each.label) of \(each.user.name), tick \(tick)")
          judged += 1
        }
      }
    }
    return judged
  }
}
