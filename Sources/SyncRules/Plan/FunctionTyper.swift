/// Types a call of a scalar function.
struct FunctionTyper {
  let call: FunctionCall
  let arguments: [PlanExpression]

  func typed(options: RuleOptions) throws(Diagnostic) -> PlanExpression {
    let name = call.name.name.lowercased()
    switch name {
    case "upper": return .call(.upper, first(1))
    case "lower": return .call(.lower, first(1))
    case "substring":
      return arguments.count > 2
        ? .call(.substring, first(3)) : .call(.substringFrom, first(2))
    case "hex": return .call(.hex, first(1))
    case "base64": return .call(.base64, first(1))
    case "length": return .call(.length, first(1))
    case "typeof": return .call(.typeof, first(1))
    case "ifnull":
      let pair = first(2)
      try requireOneKind(pair[0], pair[1])
      return .call(.ifnull, pair)
    case "iif":
      let all = first(3)
      try requireOneKind(all[1], all[2])
      return .call(.iif, all)
    case "instr":
      let pair = first(2)
      if (pair[0].valueClass == .blob) != (pair[1].valueClass == .blob), pair[0] != .null,
        pair[1] != .null
      {
        throw mixed()
      }
      return .call(.instr, pair)
    case "uuid_blob": return .call(.uuidBlob, first(1))
    case "json_valid": return .call(.jsonValid, first(1))
    case "json_keys": return .call(.jsonKeys, [try json(first(1)[0])])
    case "json_extract":
      return .member(
        try json(first(1)[0]), path: try path(at: 1), asValue: true,
        legacyNull: !options.fixedJSONExtract)
    case "json_array_length":
      guard arguments.count > 1 else {
        return .call(.jsonArrayLength, [try json(first(1)[0])])
      }
      // A missing path is NULL, anything but an array has no elements.
      return .call(
        .jsonArrayLengthAt,
        [
          .member(
            try json(arguments[0]), path: try path(at: 1), asValue: false, legacyNull: false)
        ])
    case "unixepoch", "datetime": return try time(name)
    case "now":
      throw .error(
        .now, "now() can only be compared with a column", remedy: NowExpression.example,
        at: call.span)
    case "st_asgeojson", "st_astext", "st_x", "st_y":
      throw .error(
        .notCompiled, "\(name)() is not supported by this version",
        remedy: "keep the value in a generated column and select that", at: call.span)
    default:
      throw .error(
        .unknownFunction, "there is no function \(call.displayName)",
        remedy: Self.remedies[name], at: call.span)
    }
  }

  private static let remedies = [
    "coalesce": "write ifnull(a, b)",
    "substr": "write substring(a, start, length)",
    "json_tree": "write a path with ->>",
  ]

  /// The first arguments, with NULL for those that are missing.
  private func first(_ count: Int) -> [PlanExpression] {
    (0..<count).map { $0 < arguments.count ? arguments[$0] : .null }
  }

  private func requireOneKind(
    _ left: PlanExpression, _ right: PlanExpression
  ) throws(Diagnostic) {
    if left.valueClass.joined(with: right.valueClass) == nil { throw mixed() }
  }

  private func mixed() -> Diagnostic {
    .error(
      .blobMixed, "\(call.displayName)() cannot mix a binary value with another one",
      remedy: "use hex() or base64() on it", at: call.span)
  }

  private func json(_ argument: PlanExpression) throws(Diagnostic) -> PlanExpression {
    guard argument.valueClass == .blob else { return argument }
    throw .error(.blobMixed, "a binary value is not read as JSON", at: call.span)
  }

  private func path(at index: Int) throws(Diagnostic) -> [String] {
    guard index < arguments.count, case .text(let text) = arguments[index] else {
      throw .error(
        .dynamicArgument, "\(call.displayName)() needs its path as a text",
        remedy: "write a path such as '$.a.b'", at: call.span)
    }
    guard text.hasPrefix("$") else {
      throw .error(
        .dynamicArgument, "the path of \(call.displayName)() must begin with $",
        remedy: "write '$.\(text)'", at: call.span)
    }
    return JSONPath.components(text)
  }

  private func time(_ name: String) throws(Diagnostic) -> PlanExpression {
    var epoch = false
    var subsec = false
    for (index, argument) in arguments.dropFirst().prefix(2).enumerated() {
      guard case .text(let modifier) = argument else {
        throw .error(
          .dynamicArgument, "\(name)() needs its modifiers as texts", at: call.span)
      }
      switch modifier.lowercased() {
      case "unixepoch" where index == 0: epoch = true
      case "subsec", "subsecond": subsec = true
      default:
        throw .error(
          .dynamicArgument, "\(name)() has no modifier of this name here",
          remedy: "there are 'unixepoch', as the first one, and 'subsec'", at: call.span)
      }
    }
    let arguments = [first(1)[0], PlanExpression.integer(epoch ? "1" : "0")]
    if arguments[0].valueClass == .blob {
      throw .error(.blobMixed, "a binary value is not read as a date", at: call.span)
    }
    switch (name, subsec) {
    case ("unixepoch", false): return .call(.unixepoch, arguments)
    case ("unixepoch", true): return .call(.unixepochSubsec, arguments)
    case (_, false): return .call(.datetime, arguments)
    case (_, true): return .call(.datetimeSubsec, arguments)
    }
  }
}
