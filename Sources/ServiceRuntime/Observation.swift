/// One thing worth knowing that happened: the libraries tell, the executable decides who hears it.
///
/// Fields never hold tokens, rows or SQL values.
package struct Observation: Sendable {
  package enum Level: Int, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error

    package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

    /// The name in logs and configuration.
    package var name: String { String(describing: self) }

    package init?(name: String) {
      guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
      self = level
    }
  }

  package let level: Level
  /// A dotted name, `tick.committed`.
  package let event: String
  package let fields: [String: FieldValue]
  package let error: (any Error)?

  package init(
    _ level: Level, _ event: String, _ fields: [String: FieldValue] = [:],
    error: (any Error)? = nil
  ) {
    self.level = level
    self.event = event
    self.fields = fields
    self.error = error
  }

  package static func debug(_ event: String, _ fields: [String: FieldValue] = [:]) -> Observation {
    Observation(.debug, event, fields)
  }

  package static func info(_ event: String, _ fields: [String: FieldValue] = [:]) -> Observation {
    Observation(.info, event, fields)
  }

  package static func warning(
    _ event: String, _ fields: [String: FieldValue] = [:], error: (any Error)? = nil
  ) -> Observation {
    Observation(.warning, event, fields, error: error)
  }

  package static func error(
    _ event: String, _ fields: [String: FieldValue] = [:], error: (any Error)? = nil
  ) -> Observation {
    Observation(.error, event, fields, error: error)
  }
}

/// A value of a field; literals make one.
package enum FieldValue: Sendable, Equatable, ExpressibleByStringLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
  case string(String)
  case int(Int)
  case double(Double)
  case bool(Bool)

  package init(stringLiteral value: String) { self = .string(value) }
  package init(integerLiteral value: Int) { self = .int(value) }
  package init(floatLiteral value: Double) { self = .double(value) }
  package init(booleanLiteral value: Bool) { self = .bool(value) }
}

/// Hears observations. Called on any thread, so it must be quick.
package protocol Observer: Sendable {
  func observe(_ observation: Observation)
}

/// Hears nothing.
package struct NoObserver: Observer {
  package init() {}
  package func observe(_ observation: Observation) {}
}
