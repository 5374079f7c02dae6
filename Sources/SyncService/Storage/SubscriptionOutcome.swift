package import BucketStorage
package import SyncProtocol
internal import SyncRules

/// What came of a request's subscriptions, told by stream.
package enum SubscriptionOutcome {
  /// The subscription names no stream of the rules in force.
  static let unknownStream = "SLUICE_STREAM_UNKNOWN"
  /// A value that the stream reads is not of the kind that it needs.
  static let wrongValue = "SLUICE_STREAM_VALUE"

  /// The streams that the client has or asked for, in the rules' order, and then names that are none.
  package static func streams(
    of subscriptions: [StreamSubscription], includeDefaults: Bool, among streams: [GrantedStream],
    faults: [SubscriptionFault]
  ) -> [StreamState] {
    let wanted = Set(subscriptions.map { BucketName($0.stream) })
    let faults = Dictionary(grouping: faults, by: { BucketName($0.stream) })
    var outcome: [StreamState] = []
    for stream in streams {
      let name = BucketName(stream.name)
      let isDefault = stream.isDefault && includeDefaults
      guard isDefault || wanted.contains(name) else { continue }
      outcome.append(
        StreamState(
          name: stream.name, isDefault: isDefault,
          errors: (faults[name] ?? []).map {
            SubscriptionError(subscription: $0.place, code: wrongValue, message: $0.message)
          }))
    }
    return outcome + unknown(subscriptions, among: streams)
  }

  private static func unknown(
    _ subscriptions: [StreamSubscription], among streams: [GrantedStream]
  ) -> [StreamState] {
    let known = Set(streams.map { BucketName($0.name) })
    var outcome: [StreamState] = []
    var places: [BucketName: Int] = [:]
    for (place, subscription) in subscriptions.enumerated() {
      let name = BucketName(subscription.stream)
      guard !known.contains(name) else { continue }
      let index = places[name] ?? outcome.count
      if places.updateValue(index, forKey: name) == nil {
        outcome.append(StreamState(name: name.text, isDefault: false))
      }
      outcome[index].errors.append(
        SubscriptionError(
          subscription: place, code: unknownStream, message: message(name.text, streams)))
    }
    return outcome
  }

  private static func message(_ name: String, _ streams: [GrantedStream]) -> String {
    let nearest = Suggestion.nearest(to: name, among: streams.map(\.name))
    return "there is no stream \(name)" + (nearest.map { "; did you mean \($0)?" } ?? "")
  }
}
