public import RTP

/// Which end of the DTLS handshake this peer plays (RFC 5763 section 5, `a=setup`).
public enum DTLSRole: Sendable, Equatable {
    case client
    case server
}

/// SRTP protection profiles that are negotiated (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
public enum SRTPProfile: String, Sendable, CaseIterable {
    case aeadAES128GCM = "AEAD_AES_128_GCM"
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case aes128CMSHA1_80 = "AES128_CM_SHA1_80"

    /// Bytes of master key and of master salt.
    public var keyLength: Int { 16 }
    public var saltLength: Int { self == .aeadAES128GCM ? 12 : 14 }
}

/// Master key followed by master salt of each direction. A callee that receives them
/// by `inout` overwrites them.
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

/// What a DTLS engine has come to.
public enum DTLSProgress: Sendable {
    case handshaking
    /// The handshake is complete and the peer's certificate had one of the expected fingerprints.
    case connected(SRTPProfile)
    /// The handshake cannot succeed; one sentence says why.
    case failed(String)
    /// The peer closed (close_notify).
    case closed
}

/// DTLS 1.2 for one peer, fed with datagrams and told the time. PeerIO implements it with OpenSSL; tests with a double.
///
/// The engine verifies the peer's certificate against the fingerprints given to `start` before it reports
/// `connected`, in both roles; without a match it reports `failed` and yields no keys.
public protocol DTLSEngine: AnyObject {
    /// Fingerprint of the local certificate.
    var localFingerprint: Fingerprint { get }
    func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime)
    /// Takes one datagram whose first byte is 20...63 (RFC 7983).
    func receive(_ datagram: borrowing PacketBuffer, now: MonotonicTime)
    /// Resends what the handshake timer asks for.
    func handleTimeout(now: MonotonicTime)
    /// When `handleTimeout` wants to be called; `.never` without a running timer.
    var nextTimeout: MonotonicTime { get }
    /// Moves the datagrams to send into the batch.
    func drain(into batch: inout DatagramBatch)
    var progress: DTLSProgress { get }
    /// Derives the keys of a connected session anew; the engine keeps no copy. Nil where there are none.
    func exportKeys() -> SRTPKeys?
    /// Queues a close_notify.
    func close()
}

/// SRTP for one peer. PeerIO implements it with libsrtp2; tests with a double.
public protocol SRTPEngine: AnyObject {
    /// Takes the keys and overwrites them with zeros.
    init(keys: inout SRTPKeys) throws
    /// Encrypts in place; `packet.count` grows by the trailer. False when it cannot be protected (dropped, counted).
    func protectRTP(_ packet: inout PacketBuffer) -> Bool
    func protectRTCP(_ packet: inout PacketBuffer) -> Bool
    /// Verifies and decrypts in place. False for a bad tag or a replay.
    func unprotectRTP(_ packet: inout PacketBuffer) -> Bool
    func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool
    /// Frees what the engine keeps for an SSRC that it has received. Never for one that it sends: a sender that starts
    /// counting anew encrypts twice under one index.
    func forget(_ received: SSRC)
}
