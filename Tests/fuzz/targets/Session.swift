internal import PeerSession
internal import RTP

/// A secured session that receives the datagrams of an authenticated but hostile peer.
///
/// Each datagram follows a byte with its length in units of eight bytes and a byte with the milliseconds that pass
/// before it. Cryptography is left out: every packet counts as authentic.
func fuzzSession(_ bytes: [UInt8]) {
    var now = MonotonicTime.zero + .seconds(1)
    var configuration = PeerSessionConfiguration(cname: "fuzz", seed: 1)
    configuration.outgoingCapacity = 64
    let session = PeerSession(dtls: OpenHandshake(), configuration: configuration) { try OpenSRTP(keys: &$0) }
    _ = session.addReceiver(
        ReceiverConfiguration(
            ssrc: SSRC(1), retransmissionSSRC: SSRC(2), mid: "0",
            extensions: HeaderExtensionIDs(mid: 4, captureTime: 5), clockRate: 90000, payloadTypes: [96, 97],
            retransmissionPayloadTypes: [96: 98], nack: true))
    _ = session.addReceiver(
        ReceiverConfiguration(
            mid: "1", extensions: HeaderExtensionIDs(mid: 4), clockRate: 48000, payloadTypes: [111],
            redundancyPayloadTypes: [111: 63], nack: false))
    _ = session.addSender(
        SenderConfiguration(ssrc: SSRC(9), retransmissionSSRC: SSRC(10), clockRate: 90000), now: now)
    session.start(role: .client, expecting: [], now: now)
    session.transportConnected(now: now)
    precondition(session.isSecured)

    var rest = bytes[...]
    while let length = rest.popFirst(), let pause = rest.popFirst() {
        now = now + .milliseconds(Int64(pause))
        var datagram = packet(rest.prefix(Int(length) * 8))
        rest = rest.dropFirst(Int(length) * 8)
        _ = session.receive(&datagram, now: now)
        while session.receiveCopy(into: &datagram, now: now) != nil {}
        precondition(datagram.count <= PacketBuffer.capacity)
        if session.nextTimeout <= now { session.handleTimeout(now: now) }
        while session.pollEvent() != nil {}
        precondition(session.outgoingCount <= 64)
        var batch = DatagramBatch()
        session.drain(into: &batch)
    }
}

/// A handshake that is over as soon as it begins.
private final class OpenHandshake: DTLSEngine {
    let localFingerprint = Fingerprint(algorithm: "sha-256", digest: [0])
    private(set) var progress = DTLSProgress.handshaking
    let nextTimeout = MonotonicTime.never

    func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime) {
        progress = .connected(.aeadAES128GCM)
    }
    func exportKeys() -> SRTPKeys? { SRTPKeys(profile: .aeadAES128GCM, local: [], remote: []) }
    func receive(_ datagram: borrowing PacketBuffer, now: MonotonicTime) {}
    func handleTimeout(now: MonotonicTime) {}
    func drain(into batch: inout DatagramBatch) {}
    func release() {}
    func close() {}
}

private final class OpenSRTP: SRTPEngine {
    override func protectRTP(_ packet: inout PacketBuffer) -> Bool { true }
    override func unprotectRTP(_ packet: inout PacketBuffer) -> Bool { true }
    override func protectRTCP(_ packet: inout PacketBuffer) -> Bool { true }
    override func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool { true }
}
