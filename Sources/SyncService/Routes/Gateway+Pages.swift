internal import HTTPServer
internal import SyncProtocol
internal import TokenAuth

// Plain pages, for clients that do not stream.
extension Gateway {
  func answerSchema(_ responder: HTTPResponder) async throws {
    var writer = JSONWriter(reserving: 1024)
    try await source.schema().encode(to: &writer)
    writer.append(UInt8(ascii: "\n"))
    try await responder.respond(json: writer.take())
  }

  /// `GET /v1/buckets?subscribe=<stream>&defaults=false`
  func answerBuckets(
    _ request: HTTPRequest, _ responder: HTTPResponder, for token: VerifiedToken
  ) async throws {
    let query = try PageQuery(request.query, maximum: nil)
    let view = try await source.view(of: query.view(for: token))
    let position = SyncPosition(stamp: view.tick.stamp, id: view.tick.boundary).shortText
    var writer = JSONWriter(reserving: 128 + 128 * view.buckets.count)
    writer.append(literal: "{\"tick\":")
    writer.append(view.tick.number)
    writer.append(literal: ",\"stamp\":")
    writer.append(string: view.tick.stamp)
    writer.append(literal: ",\"buckets\":[")
    for (index, bucket) in view.buckets.enumerated() {
      if index > 0 { writer.append(UInt8(ascii: ",")) }
      writer.append(literal: "{\"name\":")
      writer.append(string: bucket.name.text)
      writer.append(literal: ",\"priority\":")
      writer.append(Int64(bucket.priority))
      writer.append(literal: ",\"count\":")
      writer.append(bucket.count)
      writer.append(literal: ",\"position\":")
      writer.append(string: position)
      writer.append(UInt8(ascii: "}"))
    }
    writer.append(literal: "]}\n")
    try await responder.respond(json: writer.take())
  }

  /// `GET /v1/buckets/{name}/rows?after=<stamp>,<id>&limit=n`, and the subscriptions that lead to the bucket
  func answerRows(
    of name: BucketName, _ request: HTTPRequest, _ responder: HTTPResponder,
    for token: VerifiedToken
  ) async throws {
    let query = try PageQuery(request.query, maximum: configuration.pageRows)
    let view = try await source.view(of: query.view(for: token))
    guard let bucket = view.buckets.first(where: { $0.name == name }) else {
      throw Refusal.noBucket
    }
    let start = query.after.map(\.start) ?? view.tick.boundary
    let after = query.after?.id ?? 0
    if let position = query.after {
      guard try await source.survival(of: [position]) == [true],
        position.id <= view.tick.boundary, position.start <= view.tick.boundary,
        max(position.id, position.start) >= bucket.floor
      else { throw Refusal.positionGone }
    }
    let end = SyncPosition(stamp: view.tick.stamp, id: view.tick.boundary)
    guard let rowID = bucket.rowID, bucket.lastID > after else {
      let empty = RowsLineEncoder(bucket: name, form: .page).finish(next: end, more: false)
      return try await responder.respond(json: empty)
    }
    let page = try await source.rows(
      StreamSession.StateMachine.PageRequest(
        bucket: name, rowID: rowID, after: after, through: view.tick.boundary, start: start),
      limit: query.limit, end: end)
    guard let page else {
      throw Refusal.noMemory(retryAfter: .random(in: configuration.retryAfter))
    }
    guard max(after, start) >= page.facts.floor else { throw Refusal.positionGone }
    try await responder.respond(json: page.body)
  }
}

/// The parameters of a request for a page.
struct PageQuery: Equatable {
  var after: SyncPosition?
  var limit: Int
  var subscriptions: [StreamSubscription] = []
  var includeDefaults = true

  /// `maximum` is the highest limit, nil where there are no rows to limit.
  init(_ query: [(name: String, value: String)], maximum: Int?) throws {
    limit = min(1000, maximum ?? 0)
    var given: Set<String> = []
    for (name, value) in query {
      guard name == "subscribe" || given.insert(name).inserted else {
        throw Refusal.badParameter("Only subscribe can be given more than once.")
      }
      switch name {
      case "subscribe":
        subscriptions.append(try StreamSubscription(parsing: value))
      case "defaults":
        guard value == "true" || value == "false" else {
          throw Refusal.badParameter("The parameter defaults must be true or false.")
        }
        includeDefaults = value == "true"
      case "after" where maximum != nil:
        after = try SyncPosition(parsing: value)
      case "limit" where maximum != nil:
        guard let maximum, let number = Int(value), (1...maximum).contains(number),
          !value.hasPrefix("+")
        else {
          throw Refusal.badParameter(
            "The parameter limit must be a number from 1 to \(maximum ?? 0).")
        }
        limit = number
      default:
        throw Refusal.badParameter(
          maximum == nil
            ? "Only subscribe and defaults can be given."
            : "Only after, limit, subscribe and defaults can be given.")
      }
    }
    let most = StreamRequest.Limits().subscriptions
    guard subscriptions.count <= most else {
      throw Refusal.badParameter("The parameter subscribe can be given \(most) times.")
    }
  }

  func view(for token: VerifiedToken) -> ViewRequest {
    ViewRequest(
      claimsJSON: token.claimsJSON, subscriptions: subscriptions, includeDefaults: includeDefaults)
  }
}
