/// What one AND term of a stream's WHERE says.
enum StreamTerm {
  /// A table is joined.
  case table(Int)
  /// The elements of a JSON value are joined.
  case elements(Int)
  /// A condition on values of one home, or on none.
  case scalar(TypedScalar)
  /// Values of two homes are equal.
  case link(TypedScalar, TypedScalar)
}

/// A condition as AND and OR over terms. NOT has been moved into the terms.
indirect enum StreamCondition {
  case term(StreamTerm)
  case all([StreamCondition])
  case any([StreamCondition])

  static func scalar(_ scalar: TypedScalar) -> StreamCondition { .term(.scalar(scalar)) }

  /// The condition as a value, if it is about values of one home and joins nothing.
  private var asScalar: TypedScalar? {
    switch self {
    case .term(.scalar(let scalar)): return scalar
    case .term, .any: return nil
    case .all(let conditions):
      var result: TypedScalar?
      for condition in conditions {
        guard let scalar = condition.asScalar else { return nil }
        guard let first = result else {
          result = scalar
          continue
        }
        let joined = first.joined(with: scalar)
        guard joined.homes.count < 2 else { return nil }
        result = joined.with(.and(first.expression, scalar.expression))
      }
      return result
    }
  }

  /// An OR in which the alternatives about one home are one value: they need no bucket of their own. It
  /// comes last, so that one more of them does not renumber the others' buckets.
  static func either(_ conditions: [StreamCondition]) -> StreamCondition {
    var others: [StreamCondition] = []
    var values: [TypedScalar] = []
    let flat = conditions.flatMap { condition -> [StreamCondition] in
      if case .any(let alternatives) = condition { return alternatives }
      return [condition]
    }
    for condition in flat {
      guard let scalar = condition.asScalar else {
        others.append(condition)
        continue
      }
      guard
        let index = values.firstIndex(where: { $0.homes.union(scalar.homes).count < 2 })
      else {
        values.append(scalar)
        continue
      }
      values[index] = values[index].joined(with: scalar)
        .with(.or(values[index].expression, scalar.expression))
    }
    let alternatives = others + values.map { StreamCondition.scalar($0) }
    return alternatives.count == 1 ? alternatives[0] : .any(alternatives)
  }
}

/// The disjunctive normal form: a row belongs to a stream if all terms of one of the branches hold.
enum NormalForm {
  static let maximumBranches = 100

  struct TooManyBranches: Error {}

  static func branches(
    of condition: StreamCondition
  ) throws(TooManyBranches) -> [[StreamTerm]] {
    switch condition {
    case .term(let term): return [[term]]
    case .any(let conditions):
      var result: [[StreamTerm]] = []
      for condition in conditions {
        result += try branches(of: condition)
        guard result.count <= maximumBranches else { throw TooManyBranches() }
      }
      return result
    case .all(let conditions):
      var result: [[StreamTerm]] = [[]]
      for condition in conditions {
        let alternatives = try branches(of: condition)
        guard result.count * alternatives.count <= maximumBranches else { throw TooManyBranches() }
        result = result.flatMap { terms in alternatives.map { terms + $0 } }
      }
      return result
    }
  }
}
