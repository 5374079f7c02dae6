private import CYAML

/// Reads a YAML text as libyaml's events, with every mark as a byte offset.
///
/// Not thread safe; `YAMLDocument` uses one for the length of a parse.
struct YAMLEventParser: ~Copyable {

  enum Event {
    case documentStart
    case end
    case scalar(value: String, style: YAMLScalar.Style, tag: String?, anchor: String?)
    case alias(String)
    case sequenceStart(tag: String?, anchor: String?)
    case sequenceEnd
    case mappingStart(tag: String?, anchor: String?)
    case mappingEnd
    /// Stream and document ends, which carry nothing.
    case other
  }

  struct Failure: Error {
    var message: String
    var offset: Int
  }

  private let parser: UnsafeMutablePointer<yaml_parser_t>
  private let input: UnsafeMutableBufferPointer<UInt8>
  /// The byte offset of each code point, and one more for the end; libyaml counts code points.
  private let byteOffsets: [Int]

  init?(_ text: String) {
    let bytes = Array(text.utf8)
    // libyaml does not count a byte order mark.
    let skipped = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    var offsets: [Int] = []
    offsets.reserveCapacity(bytes.count + 1)
    for (offset, byte) in bytes.enumerated() where offset >= skipped && byte & 0xC0 != 0x80 {
      offsets.append(offset)
    }
    offsets.append(bytes.count)
    byteOffsets = offsets

    parser = .allocate(capacity: 1)
    input = .allocate(capacity: max(bytes.count - skipped, 1))
    _ = input.initialize(from: bytes.dropFirst(skipped))
    guard yaml_parser_initialize(parser) == 1 else {
      parser.deallocate()
      input.deallocate()
      return nil
    }
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
    yaml_parser_set_input_string(parser, input.baseAddress, bytes.count - skipped)
  }

  deinit {
    yaml_parser_delete(parser)
    parser.deallocate()
    input.deallocate()
  }

  /// The next event and the bytes it covers; `.end` after the last.
  mutating func next() throws(Failure) -> (event: Event, span: SourceSpan) {
    var raw = yaml_event_t()
    guard yaml_parser_parse(parser, &raw) == 1 else { throw failure() }
    defer { yaml_event_delete(&raw) }
    let span = SourceSpan(start: offset(of: raw.start_mark), end: offset(of: raw.end_mark))
    return (Self.event(raw), span)
  }

  private static func event(_ raw: yaml_event_t) -> Event {
    switch raw.type {
    case YAML_NO_EVENT, YAML_STREAM_END_EVENT: return .end
    case YAML_DOCUMENT_START_EVENT: return .documentStart
    case YAML_ALIAS_EVENT: return .alias(string(raw.data.alias.anchor) ?? "")
    case YAML_SCALAR_EVENT:
      let scalar = raw.data.scalar
      let value = String(
        decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
      return .scalar(
        value: value, style: style(scalar.style), tag: string(scalar.tag),
        anchor: string(scalar.anchor))
    case YAML_SEQUENCE_START_EVENT:
      let sequence = raw.data.sequence_start
      return .sequenceStart(tag: string(sequence.tag), anchor: string(sequence.anchor))
    case YAML_SEQUENCE_END_EVENT: return .sequenceEnd
    case YAML_MAPPING_START_EVENT:
      let mapping = raw.data.mapping_start
      return .mappingStart(tag: string(mapping.tag), anchor: string(mapping.anchor))
    case YAML_MAPPING_END_EVENT: return .mappingEnd
    default: return .other
    }
  }

  private static func style(_ style: yaml_scalar_style_t) -> YAMLScalar.Style {
    switch style {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE: .singleQuoted
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE: .doubleQuoted
    case YAML_LITERAL_SCALAR_STYLE: .literal
    case YAML_FOLDED_SCALAR_STYLE: .folded
    default: .plain
    }
  }

  private static func string(_ pointer: UnsafeMutablePointer<yaml_char_t>?) -> String? {
    pointer.map { String(cString: $0) }
  }

  private func offset(of mark: yaml_mark_t) -> Int {
    byteOffsets[min(Int(mark.index), byteOffsets.count - 1)]
  }

  private func failure() -> Failure {
    let problem = parser.pointee.problem.map { String(cString: $0) } ?? "the text is not YAML"
    let context = parser.pointee.context.map { String(cString: $0) }
    let isReader = parser.pointee.error == YAML_READER_ERROR
    let offset =
      isReader
      ? byteOffsets[0] + Int(parser.pointee.problem_offset)
      : offset(of: parser.pointee.problem_mark)
    return Failure(message: context.map { "\($0), \(problem)" } ?? problem, offset: offset)
  }
}
