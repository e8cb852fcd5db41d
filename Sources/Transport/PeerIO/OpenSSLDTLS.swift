internal import COpenSSL
internal import Glibc
package import PeerSession
package import RTP

/// DTLS 1.2 for one peer with OpenSSL (RFC 6347). Negotiates SRTP keys (RFC 5764).
///
/// Datagrams pass through our own BIO, which keeps their boundaries. The peer's certificate is compared with the
/// signalled fingerprints during the handshake, in both roles. If it differs, the peer gets an alert and there are no
/// keys.
///
/// The owner calls `handleTimeout` by its own clock, but OpenSSL reads the system's wall clock to decide whether a
/// retransmission is due. If that clock is set back while a flight is lost, its retransmission is late by as much. The
/// other end retransmits its own flights, and the owner's timeout ends a handshake that cannot recover.
package final class OpenSSLDTLS: DTLSEngine {
    /// Largest datagram: fits a path of 1280 bytes after the headers of IPv6, UDP and TURN.
    package static let mtu = 1200
    /// First retransmission time of a lost flight, in microseconds, doubling. RFC 6347, section 4.2.4.1 and RFC 9147,
    /// section 5.8.2 recommend a second, for ends that may congest a path. The whole handshake has six datagrams, so on
    /// a path of 200 ms, two needless retransmissions of each flight cost about 5 kB, once. A lost flight would cost a
    /// second without video. Chromium also uses 50 ms if it does not know the round trip, and libnice does not report
    /// it.
    static let firstTimeout: UInt32 = 50_000
    /// Longest interval between retransmissions, in microseconds.
    static let longestTimeout: UInt32 = 2_000_000

    package let localFingerprint: Fingerprint
    package private(set) var progress = DTLSProgress.handshaking
    @exclusivity(unchecked) package private(set) var nextTimeout = MonotonicTime.never

    fileprivate let mtu: Int
    /// Nil after `release`.
    private var ssl: OpaquePointer?
    private var role: DTLSRole?
    private var expected: [Fingerprint] = []
    private var isVerified = false
    private var refusal: String?
    private var isClosed = false
    // The BIO's input and output.
    /// The datagram that `receive` handles. Nil after it was read.
    private var incoming: UnsafeRawBufferPointer?
    private var outgoing = DatagramBatch()
    /// The close_notify, after `release`.
    private var farewell: DatagramBatch?

    package init(certificate: Certificate, mtu: Int = OpenSSLDTLS.mtu) throws(TransportError) {
        guard let ssl = SSL_new(certificate.context), let method = DatagramBIO.method, let bio = BIO_new(method) else {
            throw TransportError(code: "transport.dtls", message: "OpenSSL could not allocate a DTLS connection.")
        }
        self.mtu = mtu
        self.ssl = ssl
        localFingerprint = certificate.fingerprint
        // The BIO and the SSL belong to this object and are freed in its deinit, so they may refer to it unretained.
        let this = Unmanaged.passUnretained(self).toOpaque()
        BIO_set_data(bio, this)
        SSL_set_bio(ssl, bio, bio)
        SSL_set_ex_data(ssl, 0, this)
        _ = ssl_set_mtu(ssl, mtu)
        DTLS_set_timer_cb(ssl) { _, last in
            last == 0 ? OpenSSLDTLS.firstTimeout : min(2 * last, OpenSSLDTLS.longestTimeout)
        }
    }

    deinit {
        SSL_free(ssl)
    }

    package func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime) {
        guard self.role == nil, !isClosed else { return }
        self.role = role
        expected = fingerprints
        switch role {
        case .client: SSL_set_connect_state(ssl)
        case .server: SSL_set_accept_state(ssl)
        }
        proceed(now: now)
    }

    package func receive(_ datagram: borrowing PacketBuffer, now: MonotonicTime) {
        guard role != nil, !isClosed, ssl != nil else { return }
        datagram.bytes.withUnsafeBytes { bytes in
            incoming = UnsafeRawBufferPointer(rebasing: bytes[..<datagram.count])
            proceed(now: now)
            incoming = nil
        }
    }

    package func handleTimeout(now: MonotonicTime) {
        guard role != nil, !isClosed, ssl != nil, now >= nextTimeout else { return }
        ERR_clear_error()
        SSL_alloc_buffers(ssl)
        if dtls_handle_timeout(ssl) < 0, case .handshaking = progress {
            progress = .failed("The peer did not respond to the DTLS handshake.")
        }
        updateTimeout(now: now)
        releaseBuffers()
    }

    package func drain(into batch: inout DatagramBatch) {
        guard !outgoing.isEmpty else { return }
        for index in 0..<outgoing.count { batch.append(outgoing[index]) }
        outgoing = DatagramBatch()
    }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        nextTimeout = .never
        if let farewell {
            outgoing.append(farewell)
        } else if case .connected = progress {
            // OpenSSL reports an error for a shutdown during a handshake.
            shutdown()
        }
    }

    package func release() {
        guard ssl != nil, !isClosed, case .connected = progress else { return }
        let pending = outgoing
        outgoing = DatagramBatch()
        shutdown()
        farewell = outgoing
        outgoing = pending
        SSL_free(ssl)
        ssl = nil
        nextTimeout = .never
    }

    /// Writes a close_notify.
    private func shutdown() {
        ERR_clear_error()
        SSL_alloc_buffers(ssl)
        SSL_shutdown(ssl)
    }

    // MARK: - Handshake

    private func proceed(now: MonotonicTime) {
        switch progress {
        case .handshaking: handshake()
        case .connected: read()
        case .failed, .closed: break
        }
        updateTimeout(now: now)
        releaseBuffers()
    }

    /// Frees 33 KiB of a connected session. OpenSSL allocates them again to read a record, but not to write one.
    private func releaseBuffers() {
        if case .connected = progress { SSL_free_buffers(ssl) }
    }

    private func handshake() {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        guard result != 1 else {
            finishHandshake()
            return
        }
        let error = SSL_get_error(ssl, result)
        guard error != SSL_ERROR_WANT_READ, error != SSL_ERROR_WANT_WRITE else { return }
        progress = .failed(refusal ?? "The DTLS handshake failed: \(Self.reason()).")
    }

    private func finishHandshake() {
        guard isVerified else {
            progress = .failed("OpenSSL did not verify the peer's certificate.")
            return
        }
        guard let profile = selectedProfile else {
            progress = .failed("The peer supports none of the offered SRTP profiles (RFC 5764).")
            return
        }
        progress = .connected(profile)
        read()
    }

    /// Reads records after the handshake: retransmissions of the peer's last flight, alerts, close_notify. Application
    /// data is not expected.
    private func read() {
        var discarded: UInt64 = 0
        while true {
            ERR_clear_error()
            let result = SSL_read(ssl, &discarded, Int32(MemoryLayout.size(ofValue: discarded)))
            guard result <= 0 else { continue }
            switch SSL_get_error(ssl, result) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
            default: progress = .closed
            }
            return
        }
    }

    private var selectedProfile: SRTPProfile? {
        SSL_get_selected_srtp_profile(ssl).flatMap { SRTPProfile(protection: $0.pointee.id) }
    }

    package func exportKeys() -> SRTPKeys? {
        guard case .connected(let profile) = progress, let role, ssl != nil else { return nil }
        let keyLength = profile.keyLength
        let saltLength = profile.saltLength
        var material = [UInt8](repeating: 0, count: 2 * (keyLength + saltLength))
        defer { wipe(&material) }
        let label = "EXTRACTOR-dtls_srtp"
        guard
            SSL_export_keying_material(ssl, &material, material.count, label, label.utf8.count, nil, 0, 0) == 1
        else { return nil }
        // client key, server key, client salt, server salt (RFC 5764 section 4.2)
        let salts = 2 * keyLength
        func keys(_ key: Int, _ salt: Int) -> [UInt8] {
            var keys: [UInt8] = []
            // Reserved in full, so that no copy remains when the array grows.
            keys.reserveCapacity(keyLength + saltLength)
            keys += material[key..<(key + keyLength)]
            keys += material[salt..<(salt + saltLength)]
            return keys
        }
        let client = keys(0, salts)
        let server = keys(keyLength, salts + saltLength)
        return role == .client
            ? SRTPKeys(profile: profile, local: client, remote: server)
            : SRTPKeys(profile: profile, local: server, remote: client)
    }

    /// Compares the peer's certificate with the signalled fingerprints.
    fileprivate func verify(_ certificate: OpaquePointer) -> Bool {
        let matches = expected.contains { Certificate.digest(of: certificate, algorithm: $0.algorithm) == $0 }
        isVerified = matches
        if !matches {
            refusal = "The fingerprint of the peer's certificate differs from the signalled ones."
        }
        return matches
    }

    private func updateTimeout(now: MonotonicTime) {
        let left = isClosed ? -1 : dtls_timeout(ssl)
        guard left >= 0 else {
            nextTimeout = .never
            return
        }
        // A millisecond more, so that OpenSSL's clock agrees that the time has come.
        nextTimeout = now + .microseconds(left + 1000)
        if case .failed = progress { nextTimeout = .never }
    }

    private static func reason() -> String {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        guard code != 0, let text = ERR_reason_error_string(code) else { return "the peer aborted it" }
        return String(cString: text)
    }

    // MARK: - BIO

    fileprivate func readDatagram(into target: UnsafeMutableRawPointer, capacity: Int) -> Int {
        guard let incoming, !incoming.isEmpty, let source = incoming.baseAddress else { return -1 }
        let count = min(incoming.count, capacity)
        target.copyMemory(from: source, byteCount: count)
        // A datagram is read once. Bytes that do not fit are lost, as with a socket.
        self.incoming = nil
        return count
    }

    fileprivate func writeDatagram(_ bytes: UnsafeRawBufferPointer) {
        outgoing.append(bytes)
    }
}

extension SRTPProfile {
    /// The profile by its number in OpenSSL and RFC 5764 / RFC 7714.
    init?(protection id: UInt) {
        switch Int32(id) {
        case SRTP_AEAD_AES_128_GCM: self = .aeadAES128GCM
        case SRTP_AEAD_AES_256_GCM: self = .aeadAES256GCM
        case SRTP_AES128_CM_SHA1_80: self = .aes128CMSHA1_80
        default: return nil
        }
    }
}

// MARK: - Called from C

/// OpenSSL's callback for the peer's certificate chain. Only the leaf matters.
func verifyCertificate(_ store: OpaquePointer?, _: UnsafeMutableRawPointer?) -> Int32 {
    guard let store, let certificate = X509_STORE_CTX_get0_cert(store),
        let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
        let engine = SSL_get_ex_data(OpaquePointer(ssl), 0)
    else { return 0 }
    return Unmanaged<OpenSSLDTLS>.fromOpaque(engine).takeUnretainedValue().verify(certificate) ? 1 : 0
}

/// A BIO whose every read and write is one datagram of an `OpenSSLDTLS`.
private enum DatagramBIO {
    // Created once, then only read.
    nonisolated(unsafe) static let method: OpaquePointer? = {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagrams") else { return nil }
        BIO_meth_set_create(method) { bio in
            BIO_set_init(bio, 1)
            return 1
        }
        BIO_meth_set_read(method) { bio, target, capacity in
            guard let engine = engine(of: bio), let target, capacity > 0 else { return -1 }
            bio_clear_retry_flags(bio)
            let count = engine.readDatagram(into: target, capacity: Int(capacity))
            if count < 0 { bio_set_retry_read(bio) }
            return Int32(count)
        }
        BIO_meth_set_write(method) { bio, source, count in
            guard let engine = engine(of: bio), let source, count > 0 else { return -1 }
            bio_clear_retry_flags(bio)
            engine.writeDatagram(UnsafeRawBufferPointer(start: source, count: Int(count)))
            return count
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_DGRAM_QUERY_MTU, BIO_CTRL_DGRAM_GET_FALLBACK_MTU: engine(of: bio)?.mtu ?? OpenSSLDTLS.mtu
            default: 0
            }
        }
        return method
    }()

    static func engine(of bio: OpaquePointer?) -> OpenSSLDTLS? {
        guard let data = BIO_get_data(bio) else { return nil }
        return Unmanaged<OpenSSLDTLS>.fromOpaque(data).takeUnretainedValue()
    }
}
