package import Foundation

/// Keys in a file, which is read again when it has changed.
///
/// A file that cannot be read, or holds something else than keys, changes nothing: the keys that were
/// read before go on serving.
package actor FileKeys: KeySource {
  /// What tells that a file is not the one that was read.
  private struct Identity: Equatable {
    var modified: Date?
    var inode: UInt64?
    var size: UInt64?

    init(path: String) {
      // The attributes of a link would not be those of the file that it leads to.
      let file = URL(filePath: path).resolvingSymlinksInPath().path
      let attributes = try? FileManager.default.attributesOfItem(atPath: file)
      modified = attributes?[.modificationDate] as? Date
      inode = (attributes?[.systemFileNumber] as? NSNumber)?.uint64Value
      size = (attributes?[.size] as? NSNumber)?.uint64Value
    }
  }

  private let path: String
  private let checkInterval: TimeInterval
  private let report: KeyReport
  private var set: JSONWebKeySet
  private var seen: Identity
  private var checkedAt = Date.distantPast

  /// Reads the file. Afterwards it is looked at when keys are wanted, every `checkInterval` seconds at
  /// most.
  package init(
    path: String, checkInterval: TimeInterval = 1, report: @escaping KeyReport = { _ in }
  ) throws(TokenError) {
    self.path = path
    self.checkInterval = checkInterval
    self.report = report
    // Before reading: a change in between is seen at the next look.
    seen = Identity(path: path)
    set = try JSONWebKeySet(file: path)
  }

  package func keys(identifier: String?, now: Date) -> [VerificationKey] {
    guard abs(now.timeIntervalSince(checkedAt)) >= checkInterval else { return set.keys }
    checkedAt = now
    let identity = Identity(path: path)
    guard identity != seen else { return set.keys }
    seen = identity
    do throws(TokenError) {
      set = try JSONWebKeySet(file: path)
      report(.success(set.keys.count))
    } catch {
      report(.failure(error))
    }
    return set.keys
  }
}

extension JSONWebKeySet {
  /// Reads the file of an administrator.
  package init(file path: String) throws(TokenError) {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw TokenError(.keySet, "The key set \(path) cannot be read.")
    }
    try self.init(json: Array(data), origin: .configuration)
  }
}
