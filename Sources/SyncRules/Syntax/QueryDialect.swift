/// Where a query stands, which decides what its SQL may contain.
package enum QueryDialect: Sendable, Hashable {
  case bucketParameters
  case bucketData
  /// The stream dialect of edition 2.
  case alphaStream
  /// Edition 3's streams and their named queries.
  case stream
  case eventPayload

  /// Whether the expressions are those of edition 3.
  var isStream: Bool { self == .stream }

  /// `qualifier.name(…)` functions of request data, with the number of their arguments.
  var requestFunctions: [String: Int] {
    switch self {
    case .bucketParameters, .bucketData:
      [
        "request.user_id": 0, "request.jwt": 0, "request.parameters": 0, "request.parameter": 1,
      ]
    case .alphaStream, .stream:
      [
        "auth.user_id": 0, "auth.parameters": 0, "auth.parameter": 1, "connection.parameters": 0,
        "connection.parameter": 1, "subscription.parameters": 0, "subscription.parameter": 1,
      ]
    case .eventPayload: [:]
    }
  }

  /// The scalar functions with the numbers of arguments edition 3 accepts.
  var scalarFunctions: [String: ClosedRange<Int>] {
    var functions = Self.commonFunctions
    if !isStream { functions["json_valid"] = 1...1 }
    return functions
  }

  private static let commonFunctions: [String: ClosedRange<Int>] = [
    "upper": 1...1, "lower": 1...1, "substring": 2...3, "hex": 1...1, "base64": 1...1,
    "length": 1...1, "typeof": 1...1, "ifnull": 2...Int.max, "iif": 3...3, "instr": 2...2,
    "uuid_blob": 1...1, "json_extract": 2...Int.max, "json_array_length": 1...2, "json_keys": 1...1,
    "unixepoch": 1...Int.max, "datetime": 1...Int.max, "st_asgeojson": 1...1, "st_astext": 1...1,
    "st_x": 1...1, "st_y": 1...1,
  ]
}
