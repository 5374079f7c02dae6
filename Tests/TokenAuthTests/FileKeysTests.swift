import Foundation
import Synchronization
import Testing

@testable import TokenAuth

struct FileKeysTests {
  private static func set(_ names: String...) -> String {
    let keys = names.map {
      "{\"kty\":\"oct\",\"kid\":\"\($0)\",\"k\":\"\(Base64URL.encode(TokenVerifierTests.secret))\"}"
    }
    return "{\"keys\":[\(keys.joined(separator: ","))]}"
  }

  private static func time(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }

  /// A folder of its own for each test.
  private func withFile(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder.appending(path: "jwks.json"))
  }

  private func names(_ keys: FileKeys, _ second: Double) async -> [String?] {
    await keys.keys(identifier: nil, now: Self.time(second)).map(\.identifier)
  }

  @Test func `a file that is written over or replaced is read again, a second later at most`()
    async throws
  {
    try await withFile { file in
      try Data(Self.set("a").utf8).write(to: file)
      let keys = try FileKeys(path: file.path)
      #expect(await names(keys, 1) == ["a"])
      try Data(Self.set("a", "b").utf8).write(to: file)
      #expect(await names(keys, 1.9) == ["a"])
      #expect(await names(keys, 2) == ["a", "b"])
      // Of the same size and age, but another file.
      let modified = try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate]
      let other = file.deletingLastPathComponent().appending(path: "other.json")
      try Data(Self.set("c", "d").utf8).write(to: other)
      try FileManager.default.setAttributes(
        [.modificationDate: try #require(modified)], ofItemAtPath: other.path)
      try FileManager.default.removeItem(at: file)
      try FileManager.default.moveItem(at: other, to: file)
      #expect(await names(keys, 3) == ["c", "d"])
    }
  }

  @Test func `a link that leads to another file is followed`() async throws {
    try await withFile { link in
      let folder = link.deletingLastPathComponent()
      for name in ["a", "b"] {
        try Data(Self.set(name).utf8).write(to: folder.appending(path: name))
      }
      let path = link.path
      try FileManager.default.createSymbolicLink(
        atPath: path, withDestinationPath: folder.appending(path: "a").path)
      let keys = try FileKeys(path: path)
      #expect(await names(keys, 1) == ["a"])
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.createSymbolicLink(
        atPath: path, withDestinationPath: folder.appending(path: "b").path)
      #expect(await names(keys, 2) == ["b"])
    }
  }

  @Test func `what cannot be read leaves the old keys, and is told once`() async throws {
    try await withFile { file in
      try Data(Self.set("a").utf8).write(to: file)
      let told = Mutex<[Int?]>([])
      let keys = try FileKeys(path: file.path) { result in
        told.withLock { $0.append(try? result.get()) }
      }
      try Data("{\"keys\":[".utf8).write(to: file)
      for second in 1...3 { #expect(await names(keys, Double(second)) == ["a"]) }
      #expect(told.withLock { $0 } == [nil])
      try FileManager.default.removeItem(at: file)
      for second in 4...6 { #expect(await names(keys, Double(second)) == ["a"]) }
      #expect(told.withLock { $0 } == [nil, nil])
      try Data(Self.set("b", "c").utf8).write(to: file)
      #expect(await names(keys, 7) == ["b", "c"])
      #expect(told.withLock { $0 } == [nil, nil, 2])
    }
  }

  @Test func `a gateway does not start without its keys`() async throws {
    try await withFile { file in
      #expect { _ = try FileKeys(path: file.path) } throws: {
        ($0 as? TokenError)?.code == .keySet
      }
    }
  }
}
