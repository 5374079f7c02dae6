/// The name of a bucket, such as `by_list["a1"]`, compared byte by byte.
///
/// Swift's own string comparison treats canonically equivalent texts as equal; PostgreSQL does not, and two such names
/// are two buckets.
package struct BucketName: Hashable, Comparable, Sendable, CustomStringConvertible,
  ExpressibleByStringLiteral
{
  package let text: String

  package init(_ text: String) { self.text = text }
  package init(stringLiteral value: String) { self.text = value }

  package var description: String { text }

  package static func == (left: BucketName, right: BucketName) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  package static func < (left: BucketName, right: BucketName) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    var copy = text
    copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
