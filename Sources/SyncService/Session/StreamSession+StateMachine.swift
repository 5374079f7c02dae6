package import SyncProtocol

extension StreamSession {
  /// What one stream has announced and sent, and what has to come next.
  ///
  /// A round begins with ``announce(_:buckets:)``, goes through pages that ``next()`` asks for, and ends
  /// with a complete when every bucket was *clean*: the bucket's last id, in the snapshot in which its
  /// last page was read, is the announced one. Pages of one round may come from different snapshots;
  /// since they end at the announced tick, whatever they lack has a higher id. Either a batch of the
  /// live feed that starts at or before the announced tick brings it, or another, smaller round.
  package struct StateMachine: Sendable {
    private struct Copy {
      var facts: BucketFacts
      /// The boundary at which the client's copy began.
      var start: Int64
      /// Every entry up to here is on the wire or was replaced by a higher one.
      var sent: Int64
      var isClean: Bool
      /// Whether the copy has to begin again, because deletions after `sent` are no longer recorded.
      var isBroken = false
      /// Whether anything was asked for in this round.
      var isLoading = false
    }

    private enum Phase {
      case initial
      case downloading
      case following
    }

    private var claims: [BucketName: BucketClaim]
    private var copies: [BucketName: Copy] = [:]
    /// The buckets in the order of sending: priority, then name.
    private var order: [BucketName] = []
    private var cursor = 0
    private var formerly: Set<BucketName> = []
    private var phase = Phase.initial
    /// Whether the client has been told that it holds the announced tick.
    package private(set) var isComplete = false
    private var unclean = false
    /// The newest snapshot that any page came from, and that a page of an unclean bucket came from.
    private var readAt: Int64 = 0
    private var uncleanAt: Int64 = 0
    /// What the client knows of its streams.
    private var streams: [StreamState] = []

    /// The tick announced last.
    package private(set) var tick: TickFacts?

    package init(claims: [BucketName: BucketClaim]) {
      self.claims = claims
    }
  }
}

// MARK: Announcing

extension StreamSession.StateMachine {
  package enum AnnounceAction: Sendable, Equatable {
    case send(Announcement)
    /// Nothing that concerns the client changed, and it has been told that it is complete.
    case nothingNew
    /// The database is older than what was sent: it was restored, or another one answers.
    case historyLost
  }

  /// Starts a round with what the stream may see at `tick`.
  package mutating func announce(
    _ tick: TickFacts, buckets: [BucketFacts], streams: [StreamState] = []
  ) -> AnnounceAction {
    if let before = self.tick, tick.number < before.number || tick.boundary < before.boundary {
      return .historyLost
    }
    guard tick.number >= readAt else { return .historyLost }
    let isFull = phase == .initial
    var listed: [BucketAnnouncement] = []
    var kept: [BucketName: Copy] = [:]
    for facts in buckets {
      let old = copies.removeValue(forKey: facts.name)
      let (copy, announcement) = copy(of: facts, at: tick, after: old)
      kept[facts.name] = copy
      if let announcement { listed.append(announcement) }
    }
    let removed = copies.keys.sorted()
    formerly.formUnion(removed)
    copies = kept
    order = kept.values.sorted {
      ($0.facts.priority, $0.facts.name) < ($1.facts.priority, $1.facts.name)
    }.map(\.facts.name)
    listed.sort { ($0.facts.priority, $0.facts.name) < ($1.facts.priority, $1.facts.name) }
    self.tick = tick
    claims = [:]
    cursor = 0
    unclean = false
    uncleanAt = 0
    let news = streams == self.streams ? nil : streams
    self.streams = streams
    if !isFull, isComplete, listed.isEmpty, removed.isEmpty, news == nil {
      phase = .following
      return .nothingNew
    }
    phase = .downloading
    isComplete = false
    return .send(
      Announcement(
        tick: tick, isFull: isFull, buckets: listed, removed: removed, streams: news))
  }

  private func copy(
    of facts: BucketFacts, at tick: TickFacts, after old: Copy?
  ) -> (Copy, BucketAnnouncement?) {
    if let old, !old.isBroken, max(old.sent, old.start) >= facts.floor {
      var copy = old
      copy.facts = facts
      copy.isLoading = false
      copy.isClean = facts.lastID <= copy.sent
      guard old.facts != facts || !old.isClean else { return (copy, nil) }
      return (copy, BucketAnnouncement(facts: facts, start: copy.start, reset: false))
    }
    // Nothing checks that a client's start is the one it was given: a false one harms that client alone. What it may see
    // comes from its token; the start only lets the floor be passed and tombstones at or below it be left out, so that
    // the client keeps rows it was sent before, which its digest then gives away.
    if old == nil, let claim = claims[facts.name], claim.survives,
      claim.id <= tick.boundary, claim.start <= tick.boundary,
      max(claim.id, claim.start) >= facts.floor
    {
      let copy = Copy(
        facts: facts, start: claim.start, sent: claim.id, isClean: facts.lastID <= claim.id)
      return (copy, BucketAnnouncement(facts: facts, start: claim.start, reset: false))
    }
    let holdsSomething = old != nil || claims[facts.name] != nil || formerly.contains(facts.name)
    let copy = Copy(facts: facts, start: tick.boundary, sent: 0, isClean: facts.lastID == 0)
    return (
      copy, BucketAnnouncement(facts: facts, start: tick.boundary, reset: holdsSomething)
    )
  }
}

// MARK: Downloading

extension StreamSession.StateMachine {
  /// A page to read: the bucket's entries with `after < id <= through`.
  package struct PageRequest: Sendable, Equatable {
    package var bucket: BucketName
    package var rowID: Int64
    package var after: Int64
    package var through: Int64
    /// The start of the client's copy: tombstones at or below it tell the client nothing.
    package var start: Int64
  }

  package enum Step: Sendable, Equatable {
    case load(PageRequest)
    /// Everything of buckets up to this priority is on the wire.
    case partial(Int)
    case complete
    /// The round is over: call ``settle(followingSince:)``.
    case settle
  }

  /// What to do next in the round.
  package mutating func next() -> Step {
    guard let tick, phase == .downloading else { return .settle }
    while cursor < order.count {
      let name = order[cursor]
      guard var copy = copies[name] else { return .settle }
      if !copy.isClean, copy.sent < tick.boundary, let rowID = copy.facts.rowID,
        copy.facts.lastID > copy.sent
      {
        copy.isLoading = true
        copies[name] = copy
        return .load(
          PageRequest(
            bucket: name, rowID: rowID, after: copy.sent, through: tick.boundary,
            start: copy.start))
      }
      if !copy.isClean { unclean = true }
      cursor += 1
      if let priority = finishedPriority(copy.facts.priority) { return .partial(priority) }
    }
    phase = .following
    for name in order { copies[name]?.sent = tick.boundary }
    guard !unclean else { return .settle }
    isComplete = true
    return .complete
  }

  /// The priority to announce as complete, when the cursor has just passed its last bucket.
  private func finishedPriority(_ priority: Int) -> Int? {
    guard !unclean, cursor < order.count,
      let following = copies[order[cursor]], following.facts.priority > priority
    else { return nil }
    let group = order[..<cursor].compactMap { copies[$0] }.filter {
      $0.facts.priority == priority
    }
    let rest = order[cursor...].compactMap { copies[$0] }
    guard group.contains(where: \.isLoading), rest.contains(where: { !$0.isClean }) else {
      return nil
    }
    return priority
  }

  package enum PageAction: Sendable, Equatable {
    case send
    /// The page holds nothing to write.
    case skip
    /// Part of what the client would need is gone: begin another round, without this page.
    case announceAgain
    /// The page comes from before the announced tick: end the stream.
    case historyLost
  }

  /// Takes notice of the page that the last ``next()`` asked for.
  package mutating func page(_ page: PageFacts) -> PageAction {
    guard let tick, phase == .downloading, cursor < order.count,
      var copy = copies[order[cursor]]
    else { return .skip }
    guard page.headTick >= max(tick.number, readAt) else { return .historyLost }
    readAt = page.headTick
    guard max(copy.sent, copy.start) >= page.floor else {
      copy.isBroken = true
      copies[order[cursor]] = copy
      return .announceAgain
    }
    // Entries replaced since the announced tick are lacking from here on, whether or not another page follows.
    let isClean = page.bucketLastID == copy.facts.lastID
    if !isClean { uncleanAt = page.headTick }
    if page.hasMore, let last = page.lastEntryID {
      copy.sent = last
    } else {
      copy.sent = tick.boundary
      copy.isClean = isClean
    }
    copies[order[cursor]] = copy
    return page.lastEntryID == nil ? .skip : .send
  }
}

// MARK: Following

extension StreamSession.StateMachine {
  package enum SettleAction: Sendable, Equatable {
    /// Wait for batches of the live feed.
    case follow
    case announceAgain
  }

  /// Decides, at the end of a round, whether the live feed can carry on from the announced tick.
  ///
  /// `followingSince` is the tick after which the feed has been giving this stream every change of its
  /// buckets.
  package func settle(followingSince: Int64) -> SettleAction {
    guard let tick, phase == .following, followingSince <= tick.number else {
      return .announceAgain
    }
    return .follow
  }

  package enum BatchAction: Sendable, Equatable {
    case ignore
    /// Write the checkpoint and the rows of its buckets; then the complete, unless a page that was read
    /// in a newer snapshot still waits for the batch that explains what it lacked.
    case send(Announcement, complete: Bool)
    case announceAgain
  }

  /// Takes a batch of the live feed.
  package mutating func batch(_ batch: BatchFacts) -> BatchAction {
    guard let tick, phase == .following else { return .announceAgain }
    guard batch.tick.number > tick.number else { return .ignore }
    guard batch.after >= tick.number, !batch.asksAgain else { return .announceAgain }
    let changed = batch.buckets.filter { copies[$0.name] != nil }
    for facts in changed {
      guard let copy = copies[facts.name], max(copy.sent, copy.start) >= facts.floor else {
        copies[facts.name]?.isBroken = true
        return .announceAgain
      }
    }
    guard !changed.isEmpty else { return .ignore }
    self.tick = batch.tick
    isComplete = batch.tick.number >= uncleanAt
    var listed: [BucketAnnouncement] = []
    for var facts in changed {
      guard var copy = copies[facts.name] else { continue }
      // The feed knows buckets, not who may see them, why, and with which priority.
      facts.priority = copy.facts.priority
      facts.subscriptions = copy.facts.subscriptions
      copy.facts = facts
      copies[facts.name] = copy
      listed.append(BucketAnnouncement(facts: facts, start: copy.start, reset: false))
    }
    for name in order {
      copies[name]?.sent = batch.tick.boundary
      if isComplete { copies[name]?.isClean = true }
    }
    listed.sort { ($0.facts.priority, $0.facts.name) < ($1.facts.priority, $1.facts.name) }
    let announcement = Announcement(tick: batch.tick, isFull: false, buckets: listed)
    return .send(announcement, complete: isComplete)
  }
}
