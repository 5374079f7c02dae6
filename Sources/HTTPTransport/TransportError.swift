/// Why there was no response, or why its body ended early.
package struct TransportError: Error, Sendable, Equatable, CustomStringConvertible {
  package enum Code: String, Sendable {
    /// The request itself cannot be sent: a malformed URL, another scheme, a line break in a header.
    case invalidRequest
    /// The host's name has no address.
    case unresolved
    /// No connection could be made.
    case unreachable
    /// Connecting or the whole exchange took too long.
    case timedOut
    /// No byte arrived for the idle timeout.
    case idle
    /// The peer's certificate or the handshake failed.
    case insecure
    /// The connection broke before the response was complete.
    case interrupted
    /// The peer does not speak HTTP, or not within its limits.
    case badResponse
    /// The body exceeds the limit asked for.
    case tooLarge
  }

  package let code: Code
  package let message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(code.rawValue): \(message)" }
}
