internal import CCurl

/// An easy handle with its request's options, and the header list that has to live as long.
///
/// `@unchecked`: built by one thread and handed to the thread of the `CurlLoop`, which alone uses it
/// from then on.
final class CurlHandle: @unchecked Sendable {
  let easy: UnsafeMutableRawPointer
  private var headerList: UnsafeMutablePointer<curl_slist>?

  init(_ request: TransportRequest, _ configuration: CurlTransportConfiguration) throws {
    try Self.check(request)
    guard Self.isInitialized, let easy = curl_easy_init() else {
      throw TransportError(.unreachable, "libcurl could not start")
    }
    self.easy = easy
    try set(CURLOPT_URL, request.url)
    try set(CURLOPT_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_FOLLOWLOCATION, 0)
    try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    try set(CURLOPT_NOSIGNAL, 1)
    try set(CURLOPT_TCP_KEEPALIVE, 1)
    try set(CURLOPT_BUFFERSIZE, 128 << 10)
    try set(CURLOPT_CONNECTTIMEOUT_MS, configuration.connectTimeout.wholeMilliseconds)
    if let timeout = request.timeout {
      try set(CURLOPT_TIMEOUT_MS, timeout.wholeMilliseconds)
    }
    if let file = configuration.certificateFile { try set(CURLOPT_CAINFO, file) }
    if let path = configuration.unixSocket { try set(CURLOPT_UNIX_SOCKET_PATH, path) }
    try setBody(request)
    for (name, value) in request.headers {
      // "Name;" is libcurl's way to write a header of no value.
      append(value.isEmpty ? "\(name);" : "\(name): \(value)")
    }
    append("Expect:")
    sluice_curl_set_pointer(easy, CURLOPT_HTTPHEADER, headerList)
  }

  deinit {
    curl_easy_cleanup(easy)
    curl_slist_free_all(headerList)
  }

  private func setBody(_ request: TransportRequest) throws {
    if let body = request.body {
      try set(CURLOPT_POST, 1)
      sluice_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
      // Copied by libcurl, of the size said before.
      let result = body.withUnsafeBytes {
        sluice_curl_set_pointer(
          easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress ?? UnsafeRawPointer(easy))
      }
      guard result == CURLE_OK else {
        throw TransportError(.invalidRequest, "the body cannot be sent")
      }
      if request.method != "POST" { try set(CURLOPT_CUSTOMREQUEST, request.method) }
    } else if request.method == "HEAD" {
      try set(CURLOPT_NOBODY, 1)
    } else {
      try set(CURLOPT_HTTPGET, 1)
      if request.method != "GET" { try set(CURLOPT_CUSTOMREQUEST, request.method) }
    }
  }

  private func append(_ line: String) {
    headerList = curl_slist_append(headerList, line)
  }

  private func set(_ option: CURLoption, _ value: Int) throws {
    guard sluice_curl_set_long(easy, option, value) == CURLE_OK else {
      throw TransportError(.invalidRequest, "libcurl refuses option \(option.rawValue)")
    }
  }

  private func set(_ option: CURLoption, _ value: String) throws {
    guard sluice_curl_set_string(easy, option, value) == CURLE_OK else {
      throw TransportError(.invalidRequest, "libcurl refuses option \(option.rawValue)")
    }
  }

  /// Refuses what would let a value write a line of its own.
  private static func check(_ request: TransportRequest) throws {
    let isToken = { (text: String) in
      !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
    }
    let isLine = { (text: String) in text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 } }
    guard isToken(request.method) else {
      throw TransportError(.invalidRequest, "the method is not a token")
    }
    guard request.url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw TransportError(.invalidRequest, "the URL has characters that must be percent-encoded")
    }
    let start = request.url.prefix(8).lowercased()
    guard start.hasPrefix("http://") || start.hasPrefix("https://") else {
      throw TransportError(.invalidRequest, "the URL is neither http nor https")
    }
    for (name, value) in request.headers {
      guard isToken(name), !name.contains(";"), isLine(value) else {
        throw TransportError(.invalidRequest, "a header has a character that none may have")
      }
    }
  }

  /// Global initialisation, once a process.
  private static let isInitialized = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
}

extension Duration {
  fileprivate var wholeMilliseconds: Int {
    let (seconds, attoseconds) = components
    return max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
  }
}
