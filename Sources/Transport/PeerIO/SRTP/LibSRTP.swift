internal import CSRTP
package import PeerSession
package import RTP

/// SRTP and SRTCP for one peer with libsrtp2 (RFC 3711, RFC 7714). One thread at a time. `OpenSSLSRTP` is faster; tests
/// compare the two.
package final class LibSRTP: SRTPEngine {
    /// How far a packet may be overtaken before it counts as a replay: more than a frame at any bitrate.
    private static let replayWindow: UInt = 1024
    /// The most bytes that protection adds: AEAD tag and SRTCP index, or HMAC tag and SRTCP index.
    private static let trailer = 16 + 4

    private let sender: OpaquePointer
    private let receiver: OpaquePointer
    /// Checked in debug builds; empty in release builds.
    private var ledger = EncryptionLedger()

    /// libsrtp2 is initialised once per process.
    private static let isReady = setUp()

    /// Returns false if initialisation fails. If other code has initialised libsrtp2 before, as GStreamer's srtp plugin
    /// does, it reports a bad parameter and is ready.
    package static func setUp() -> Bool {
        let answer = srtp_init()
        return answer == srtp_err_status_ok || answer == srtp_err_status_bad_param
    }

    package required init(keys: inout SRTPKeys) throws {
        defer {
            wipe(&keys.local)
            wipe(&keys.remote)
        }
        let length = keys.profile.keyLength + keys.profile.saltLength
        guard Self.isReady, keys.local.count == length, keys.remote.count == length,
            let sender = Self.makeContext(keys.profile, key: &keys.local, direction: ssrc_any_outbound)
        else { throw Self.failure }
        guard let receiver = Self.makeContext(keys.profile, key: &keys.remote, direction: ssrc_any_inbound) else {
            srtp_dealloc(sender)
            throw Self.failure
        }
        self.sender = sender
        self.receiver = receiver
        try super.init(keys: &keys)
    }

    deinit {
        srtp_dealloc(sender)
        srtp_dealloc(receiver)
    }

    package override func protectRTP(_ packet: inout PacketBuffer) -> Bool {
        guard packet.count + Self.trailer <= packet.bytes.count else { return false }
        guard transform(&packet, { srtp_protect(sender, $0, $1) }) else { return false }
        assert(ledger.record(packet), "SRTP encrypted two packets under one index")
        return true
    }

    package override func protectRTCP(_ packet: inout PacketBuffer) -> Bool {
        guard packet.count + Self.trailer <= packet.bytes.count else { return false }
        return transform(&packet) { srtp_protect_rtcp(sender, $0, $1) }
    }

    package override func unprotectRTP(_ packet: inout PacketBuffer) -> Bool {
        transform(&packet) { srtp_unprotect(receiver, $0, $1) }
    }

    package override func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool {
        transform(&packet) { srtp_unprotect_rtcp(receiver, $0, $1) }
    }

    package override func forget(_ received: SSRC) {
        // The result does not matter: a missing stream needs no removal.
        _ = srtp_remove_stream(receiver, received.rawValue.bigEndian)
    }

    @inline(__always)
    private func transform(
        _ packet: inout PacketBuffer,
        _ body: (UnsafeMutableRawPointer, UnsafeMutablePointer<Int32>) -> srtp_err_status_t
    ) -> Bool {
        var count = Int32(packet.count)
        let isDone = packet.bytes.withUnsafeMutableBytes { bytes in
            guard let base = bytes.baseAddress, Int(count) <= bytes.count else { return false }
            return body(base, &count) == srtp_err_status_ok
        }
        if isDone { packet.count = Int(count) }
        return isDone
    }

    private static func makeContext(
        _ profile: SRTPProfile, key: inout [UInt8], direction: srtp_ssrc_type_t
    ) -> OpaquePointer? {
        var policy = srtp_policy_t()
        switch profile {
        case .aeadAES128GCM:
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
        case .aeadAES256GCM:
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
        case .aes128CMSHA1_80:
            srtp_crypto_policy_set_rtp_default(&policy.rtp)
            srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
        }
        policy.ssrc.type = direction
        policy.window_size = replayWindow
        // libsrtp2 refuses to encrypt twice under one index: two such packets would reveal each other (RFC 3711,
        // section 9.1).
        policy.allow_repeat_tx = 0
        var context: srtp_t?
        let status = key.withUnsafeMutableBufferPointer { bytes in
            policy.key = bytes.baseAddress
            return srtp_create(&context, &policy)
        }
        guard status == srtp_err_status_ok else { return nil }
        return context
    }

    private static var failure: TransportError {
        TransportError(code: "transport.srtp", message: "libsrtp2 refused the keys that DTLS negotiated.")
    }
}
