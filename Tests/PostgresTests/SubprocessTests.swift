import TestSupport
import Testing

@Suite struct SubprocessTests {
  @Test func `a program's output, errors and status are kept`() async throws {
    let result = try await Subprocess.run(
      "/bin/sh", ["-c", "echo out $NAME; echo err >&2; exit 3"], environment: ["NAME": "x"])
    #expect(result.output == "out x\n")
    #expect(result.errors == "err\n")
    #expect(result.exit == .init(status: 3))
  }

  @Test func `a line is waited for, and a signal ends the program`() async throws {
    let process = try Subprocess.start("/bin/sh", ["-c", "echo ready; exec sleep 60"])
    #expect(try await process.line(containing: "read") == "ready")
    #expect(process.isRunning)
    process.kill9()
    #expect(await process.exit() == .init(status: 9, wasSignalled: true))
    await #expect(throws: Subprocess.Failure.self) { try await process.line(containing: "more") }
  }

  @Test func `much output is kept whole`() async throws {
    let result = try await Subprocess.run("/bin/sh", ["-c", "seq 1 200000"])
    #expect(result.output.utf8.count == 1_288_895)
    #expect(result.output.hasSuffix("\n200000\n"))
  }

  @Test func `a seed repeats the published sequence of splitmix64`() {
    var generator = SeededGenerator(seed: 1_234_567)
    let numbers = (0..<5).map { _ in generator.next() }
    #expect(
      numbers == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ])
  }
}
