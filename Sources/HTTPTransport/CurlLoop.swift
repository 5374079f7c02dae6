internal import CCurl
internal import Glibc
internal import Synchronization

/// The thread that drives every transfer of one transport. Dropping the last reference ends it; a transfer
/// under way holds one.
final class CurlLoop: Sendable {
  private let core: CurlCore

  init() {
    core = CurlCore()
    core.startThread()
  }

  deinit { core.submit(.exit) }

  func start(_ transfer: CurlTransfer, _ handle: CurlHandle) {
    core.submit(.start(transfer, handle))
  }

  func resume(_ transfer: CurlTransfer) { core.submit(.resume(transfer)) }

  func remove(_ transfer: CurlTransfer) { core.submit(.remove(transfer)) }
}

/// What the thread works on.
///
/// `@unchecked`: `transfers` belongs to the thread; other threads use `queue`, and wake the multi handle
/// under its lock, so never after the thread has freed it.
private final class CurlCore: @unchecked Sendable {
  enum Command {
    case start(CurlTransfer, CurlHandle)
    case resume(CurlTransfer)
    case remove(CurlTransfer)
    case exit
  }

  private let multi: UnsafeMutableRawPointer
  private let queue = Mutex<[Command]>([])
  private var transfers: [ObjectIdentifier: (transfer: CurlTransfer, handle: CurlHandle)] = [:]

  init() {
    guard let multi = curl_multi_init() else { fatalError("libcurl could not start") }
    self.multi = multi
    sluice_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 64)
  }

  func startThread() {
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<CurlCore>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      Unmanaged.passRetained(self).toOpaque())
    precondition(result == 0, "no thread for HTTP transfers")
    pthread_detach(thread)
  }

  func submit(_ command: Command) {
    queue.withLock {
      $0.append(command)
      _ = curl_multi_wakeup(multi)
    }
  }

  private func run() {
    // A write to a closed TLS connection must be an error and not the end of the process.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)

    var isRunning = true
    while isRunning {
      var commands: [Command] = []
      queue.withLock { swap(&$0, &commands) }
      for command in commands where !perform(command) { isRunning = false }
      var running: Int32 = 0
      curl_multi_perform(multi, &running)
      finishTransfers()
      if isRunning { curl_multi_poll(multi, nil, 0, endIdleTransfers(), nil) }
    }
    curl_multi_cleanup(multi)
  }

  private func perform(_ command: Command) -> Bool {
    switch command {
    case .start(let transfer, let handle): start(transfer, handle)
    case .resume(let transfer):
      if let entry = transfers[ObjectIdentifier(transfer)] {
        curl_easy_pause(entry.handle.easy, CURLPAUSE_CONT)
      }
    case .remove(let transfer): take(ObjectIdentifier(transfer))
    case .exit: return false
    }
    return true
  }

  private func start(_ transfer: CurlTransfer, _ handle: CurlHandle) {
    let context = Unmanaged.passUnretained(transfer).toOpaque()
    let easy = handle.easy
    sluice_curl_set_pointer(easy, CURLOPT_PRIVATE, context)
    sluice_curl_set_pointer(easy, CURLOPT_HEADERDATA, context)
    sluice_curl_set_pointer(easy, CURLOPT_WRITEDATA, context)
    sluice_curl_set_data_function(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      guard let context else { return 0 }
      let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
      let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return transfer.receiveHeader(line) ? line.count : 0
    }
    sluice_curl_set_data_function(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      guard let context else { return 0 }
      let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
      let chunk = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return transfer.receive(chunk) ? chunk.count : Int(CURL_WRITEFUNC_PAUSE)
    }
    transfers[ObjectIdentifier(transfer)] = (transfer, handle)
    curl_multi_add_handle(multi, easy)
  }

  @discardableResult
  private func take(_ key: ObjectIdentifier) -> CurlTransfer? {
    guard let entry = transfers.removeValue(forKey: key) else { return nil }
    curl_multi_remove_handle(multi, entry.handle.easy)
    return entry.transfer
  }

  private func finishTransfers() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE else { continue }
      let easy = message.pointee.easy_handle
      let result = sluice_curl_message_result(message)
      guard let key = transfers.first(where: { $0.value.handle.easy == easy })?.key else {
        continue
      }
      take(key)?.end(
        result == CURLE_OK ? .success(()) : .failure(TransportError(result)))
    }
  }

  /// Ends the transfers whose peer has been silent for too long, and returns the milliseconds until the
  /// next could be.
  private func endIdleTransfers() -> Int32 {
    let now = ContinuousClock.now
    var wait: Duration = .seconds(60)
    for (key, entry) in transfers {
      guard let deadline = entry.transfer.idleDeadline else { continue }
      if deadline <= now {
        take(key)?.end(.failure(TransportError(.idle, "no byte arrived for the idle timeout")))
      } else {
        wait = min(wait, now.duration(to: deadline))
      }
    }
    let (seconds, attoseconds) = wait.components
    return Int32(seconds) * 1000 + Int32(attoseconds / 1_000_000_000_000_000) + 1
  }
}

extension TransportError {
  fileprivate init(_ result: CURLcode) {
    let text = String(cString: curl_easy_strerror(result))
    switch result {
    case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: self.init(.invalidRequest, text)
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: self.init(.unresolved, text)
    case CURLE_COULDNT_CONNECT: self.init(.unreachable, text)
    case CURLE_OPERATION_TIMEDOUT: self.init(.timedOut, text)
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_CERTPROBLEM:
      self.init(.insecure, text)
    case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_WRITE_ERROR:
      self.init(.badResponse, text)
    default: self.init(.interrupted, text)
    }
  }
}
