import Testing

@testable import sluice

/// The words after a subcommand's name.
@Suite struct ArgumentParserTests {
  private static let command = CommandDescription(
    name: "paint", summary: "Paint a wall.",
    arguments: [
      .init(name: "WALL", help: "which wall"),
      .init(name: "DOOR", help: "and which door", isRequired: false),
    ],
    options: [
      .value("--colour", "NAME", "the colour"), .flag("--twice", "two coats"),
      .value("--format", "FORMAT", "how to tell", choices: ["text", "json"]),
      .list("--helper", "WHO", "may be given again"),
    ])

  private func parse(_ words: String...) throws(UsageError) -> Arguments {
    try ArgumentParser.parse(words, for: Self.command)
  }

  @Test func `words and options come in any order`() throws {
    let expected = Arguments(
      words: ["north", "front"], values: ["--colour": "red"], flags: ["--twice"])
    for words in [
      ["north", "front", "--colour", "red", "--twice"],
      ["--twice", "--colour=red", "north", "front"],
      ["north", "--colour", "red", "front", "--twice"],
    ] {
      #expect(try ArgumentParser.parse(words, for: Self.command) == expected)
    }
    #expect(try parse("north").words == ["north"])
  }

  @Test func `a value may be empty, hold an equals sign, or begin with a dash after one`() throws {
    #expect(try parse("w", "--colour=")["--colour"] == "")
    #expect(try parse("w", "--colour", "")["--colour"] == "")
    #expect(try parse("w", "--colour=a=b")["--colour"] == "a=b")
    #expect(try parse("w", "--colour", "a=b")["--colour"] == "a=b")
    #expect(try parse("w", "--colour=--twice")["--colour"] == "--twice")
    #expect(try parse("w", "--colour", "-1")["--colour"] == "-1")
  }

  @Test func `after two dashes everything is a word, and one dash is a word`() throws {
    #expect(try parse("--", "--twice", "--").words == ["--twice", "--"])
    #expect(try parse("-").words == ["-"])
    #expect(try parse("w", "--").words == ["w"])
  }

  @Test func `what may be given again keeps its order`() throws {
    let arguments = try parse("w", "--helper", "b", "--helper=a", "--helper", "b")
    #expect(arguments.all("--helper") == ["b", "a", "b"])
    #expect(arguments["--helper"] == nil && arguments.all("--colour") == [])
  }

  @Test func `help is wanted whatever else is missing`() throws {
    #expect(try parse("--help").wantsHelp)
    #expect(try parse("-h", "--twice").wantsHelp)
    #expect(try !parse("w", "--", "--help").wantsHelp)
  }

  @Test(arguments: [
    ([], "WALL is missing"),
    (["a", "b", "c"], "\"c\" is one word too many"),
    (["w", "--color", "red"], "unknown option --color; did you mean --colour?"),
    (["w", "--zzzzzzzz"], "unknown option --zzzzzzzz"),
    (["w", "-x"], "unknown option -x"),
    (["w", "--colour"], "--colour needs a value"),
    // Else the switch would silently be a colour.
    (["w", "--colour", "--twice"], "--colour needs a value"),
    (["w", "--colour", "--"], "--colour needs a value"),
    (["w", "--colour", "a", "--colour", "a"], "--colour is given twice"),
    (["w", "--twice=yes"], "--twice takes no value"),
    (["w", "--format", "xml"], "--format is one of text, json"),
    (["w", "--format="], "--format is one of text, json"),
  ])
  func `what it does not understand it says`(words: [String], message: String) {
    #expect(throws: UsageError(message: message)) {
      try ArgumentParser.parse(words, for: Self.command)
    }
  }

  @Test func `the help names every argument and option in columns`() {
    #expect(
      Self.command.help == """
        usage: sluice paint WALL [DOOR] [options]

        Paint a wall.

          WALL             which wall
          DOOR             and which door
          --colour NAME    the colour
          --twice          two coats
          --format FORMAT  how to tell (text, json)
          --helper WHO     may be given again
        """)
  }

  @Test func `no subcommand has two options of one name`() {
    for command in Sluice.subcommands {
      let names = command.description.options.map(\.name)
      #expect(Set(names).count == names.count, "\(command.description.name)")
      #expect(names.allSatisfy { $0.hasPrefix("--") && $0 != "--help" })
    }
  }
}
