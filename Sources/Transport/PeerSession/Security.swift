public import RTP

/// The role in the DTLS handshake (RFC 5763, section 5, `a=setup`).
public enum DTLSRole: Sendable, Equatable {
    case client
    case server
}

/// The negotiable SRTP protection profiles (RFC 5764, section 4.1.2; RFC 7714, section 14.2).
public enum SRTPProfile: String, Sendable, CaseIterable {
    case aeadAES128GCM = "AEAD_AES_128_GCM"
    case aeadAES256GCM = "AEAD_AES_256_GCM"
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case aes128CMSHA1_80 = "AES128_CM_SHA1_80"

    /// Bytes of master key and of master salt.
    public var keyLength: Int { self == .aeadAES256GCM ? 32 : 16 }
    public var saltLength: Int { self == .aes128CMSHA1_80 ? 14 : 12 }
}

/// Master key followed by master salt for each direction. A callee that receives them `inout` overwrites them.
public struct SRTPKeys: Sendable {
    public var profile: SRTPProfile
    public var local: [UInt8]
    public var remote: [UInt8]

    public init(profile: SRTPProfile, local: [UInt8], remote: [UInt8]) {
        self.profile = profile
        self.local = local
        self.remote = remote
    }
}

/// The state of a DTLS engine.
public enum DTLSProgress: Sendable {
    case handshaking
    /// The handshake finished, and the peer's certificate has one of the expected fingerprints.
    case connected(SRTPProfile)
    /// The handshake failed, with the reason in one sentence.
    case failed(String)
    /// The peer closed (close_notify).
    case closed
}

/// DTLS 1.2 for one peer, fed with datagrams and the time. PeerIO implements it with OpenSSL; tests use a double.
///
/// In both roles, the engine verifies the peer's certificate against the fingerprints of `start` before it reports
/// `connected`. Without a match, it reports `failed` and exports no keys.
public protocol DTLSEngine: AnyObject {
    /// Fingerprint of the local certificate.
    var localFingerprint: Fingerprint { get }
    func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime)
    /// Handles one datagram whose first byte is 20...63 (RFC 7983).
    func receive(_ datagram: borrowing PacketBuffer, now: MonotonicTime)
    /// Resends flights whose timer has expired.
    func handleTimeout(now: MonotonicTime)
    /// When to call `handleTimeout`. `.never` without a running timer.
    var nextTimeout: MonotonicTime { get }
    /// Moves the outgoing datagrams into the batch.
    func drain(into batch: inout DatagramBatch)
    var progress: DTLSProgress { get }
    /// Derives the keys of a connected session. The engine keeps no copy. Nil before it is connected.
    func exportKeys() -> SRTPKeys?
    /// Queues a close_notify.
    func close()
    /// Frees everything but the close_notify for `close`, because the peer has the keys too. Later datagrams are ignored.
    func release()
}

/// SRTP for one peer. PeerIO has one with OpenSSL and one with libsrtp2; tests and simulations use doubles.
///
/// A class, not a protocol, so that the path of a packet has no existential or generic call. This base class refuses every
/// packet.
open class SRTPEngine {
    /// Copies the keys and overwrites them with zeros.
    public required init(keys: inout SRTPKeys) throws {}

    /// Encrypts in place; `packet.count` grows by the trailer. Returns false on failure; the packet is dropped and
    /// counted.
    open func protectRTP(_ packet: inout PacketBuffer) -> Bool { false }

    /// Encrypts the packet that consists of `head`, with the whole header, and `rest`, and appends it to the batch.
    /// `head` may be overwritten. Returns false, and appends nothing, on failure.
    open func protectRTP(_ head: inout PacketBuffer, _ rest: Span<UInt8>, into batch: inout DatagramBatch) -> Bool {
        guard rest.count <= PacketBuffer.capacity - head.count else { return false }
        head.append(rest)
        guard protectRTP(&head) else { return false }
        batch.append(head)
        return true
    }

    open func protectRTCP(_ packet: inout PacketBuffer) -> Bool { false }

    /// Verifies and decrypts in place. Returns false for an invalid tag or a replay; the bytes are then undefined.
    open func unprotectRTP(_ packet: inout PacketBuffer) -> Bool { false }

    open func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool { false }

    /// Frees the engine's context of a received SSRC. Not for a sent one: a sender that restarts its count would
    /// encrypt twice under one index.
    open func forget(_ received: SSRC) {}
}
