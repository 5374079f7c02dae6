/// What `NOTIFY` sent.
package struct PostgresNotification: Sendable, Equatable {
  package let channel: String
  package let payload: String
  /// The process of the server that sent it.
  package let processID: Int32
}
