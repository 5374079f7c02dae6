internal import SyncProtocol

/// Small pieces of JSON text.
package enum JSONText {
  /// The text as a JSON string.
  package static func quoted(_ text: String) -> String {
    var writer = JSONWriter()
    writer.append(string: text)
    return String(decoding: writer.take(), as: UTF8.self)
  }
}
