/// How a command ended, as the shell sees it.
enum ExitStatus: Int32, Sendable {
  case done = 0
  /// The thing asked for failed: the rules have errors, a difference was found.
  case failed = 1
  case wrongUsage = 2
  /// A service cannot be reached or used.
  case unavailable = 3
}

/// A command cannot go on; `message` is for the person who typed it.
struct CommandFailure: Error {
  var status: ExitStatus
  var message: String
  var hint: String?

  init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }
}
