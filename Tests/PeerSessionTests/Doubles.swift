import PeerSession
import RTP
import Testing

/// A handshake of four flights with fingerprints and a retransmission timer; no cryptography.
///
/// Client hello 1, server certificate 2, client certificate 3, server finished 4. Both ends check the other's
/// fingerprint.
final class HandshakeDouble: DTLSEngine {
    static let alert: [UInt8] = [21, 0]

    let localFingerprint: Fingerprint
    private(set) var progress = DTLSProgress.handshaking
    private(set) var nextTimeout = MonotonicTime.never
    private var role = DTLSRole.client
    private var expected: [Fingerprint] = []
    private var waiting: [[UInt8]] = []
    private var flight: [UInt8] = []
    private var interval = TimeInterval.milliseconds(50)
    private(set) var startedAt: MonotonicTime?

    init(_ name: UInt8) { localFingerprint = Fingerprint(algorithm: "sha-256", digest: [name, name]) }

    func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime) {
        precondition(startedAt == nil, "one handshake")
        startedAt = now
        self.role = role
        expected = fingerprints
        if role == .client { say([22, 1], now: now) }
    }

    private func say(_ flight: [UInt8], now: MonotonicTime) {
        self.flight = flight
        waiting.append(flight)
        nextTimeout = now + interval
    }

    func receive(_ datagram: borrowing PacketBuffer, now: MonotonicTime) {
        let bytes = Array(datagram.bytes[..<datagram.count])
        if bytes == Self.alert {
            progress = .closed
            nextTimeout = .never
            return
        }
        guard bytes.count >= 2, bytes[0] == 22 else { return }
        switch (role, bytes[1]) {
        case (.server, 1): if case .handshaking = progress { say([22, 2] + localFingerprint.digest, now: now) }
        case (.client, 2):
            guard isExpected(bytes) else { return }
            say([22, 3] + localFingerprint.digest, now: now)
        case (.server, 3):
            guard isExpected(bytes) else { return }
            flight = [22, 4]
            waiting.append(flight)
            finish()
        case (.client, 4): finish()
        default: break
        }
    }

    private func isExpected(_ bytes: [UInt8]) -> Bool {
        if expected.contains(where: { $0.digest == Array(bytes.dropFirst(2)) }) { return true }
        progress = .failed("The peer's certificate has another fingerprint than its description.")
        nextTimeout = .never
        return false
    }

    private func finish() {
        nextTimeout = .never
        guard case .handshaking = progress else { return }
        progress = .connected(.aeadAES128GCM)
    }

    private(set) var isReleased = false

    func release() { isReleased = true }

    func exportKeys() -> SRTPKeys? {
        guard case .connected(let profile) = progress else { return nil }
        let mine: [UInt8] = [role == .client ? 0x5a : 0xa5]
        let other: [UInt8] = [role == .client ? 0xa5 : 0x5a]
        return SRTPKeys(profile: profile, local: mine, remote: other)
    }

    func handleTimeout(now: MonotonicTime) {
        guard nextTimeout <= now else { return }
        interval = interval * 2
        say(flight, now: now)
    }

    func drain(into batch: inout DatagramBatch) {
        for datagram in waiting { batch.append(datagram) }
        waiting.removeAll(keepingCapacity: true)
    }

    func close() { waiting.append(Self.alert) }
}

/// Inverts the payload bit by bit and appends a tag over header and payload ends; refuses bad tags and replays.
final class CipherDouble: SRTPEngine {
    struct Refused: Error {}

    private let local: UInt8
    private let remote: UInt8
    private var index: UInt32 = 0
    private var seen: Set<UInt64> = []
    /// SSRCs received, as libsrtp2 keeps a context for each.
    private(set) var contexts: Set<SSRC> = []
    /// Packets that were decrypted or refused.
    private(set) var unprotections = 0

    required init(keys: inout SRTPKeys) throws {
        guard let local = keys.local.first, let remote = keys.remote.first else { throw Refused() }
        self.local = local
        self.remote = remote
        try super.init(keys: &keys)
    }

    private static func tag(_ packet: borrowing PacketBuffer, _ key: UInt8, _ end: Int) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ UInt64(key) ^ UInt64(end) << 8
        func add(_ range: Range<Int>) {
            for index in range { hash = (hash ^ UInt64(packet.bytes[index])) &* 0x100_0000_01b3 }
        }
        add(0..<min(12, end))
        add(max(0, end - 12)..<end)
        return hash
    }

    private func protect(_ packet: inout PacketBuffer, from start: Int) -> Bool {
        guard packet.count + 16 <= PacketBuffer.capacity else { return false }
        for index in start..<max(start, packet.count) { packet.bytes[index] ^= local }
        packet.setUInt64(Self.tag(packet, local, packet.count), at: packet.count)
        packet.count += 8
        return true
    }

    private func unprotect(_ packet: inout PacketBuffer, from start: Int, _ ssrc: Int) -> Bool {
        unprotections += 1
        let end = packet.count - 8
        guard end >= start else { return false }
        let tag = Self.tag(packet, remote, end)
        guard packet.uint64(at: end) == tag, seen.insert(tag).inserted else { return false }
        if seen.count > 4096 { seen = [tag] }
        contexts.insert(SSRC(packet.uint32(at: ssrc)))
        packet.count = end
        for index in start..<end { packet.bytes[index] ^= remote }
        return true
    }

    private func payloadStart(_ packet: borrowing PacketBuffer) -> Int {
        RTPHeader(parsingProtected: packet)?.payloadOffset ?? 12
    }

    override func protectRTP(_ packet: inout PacketBuffer) -> Bool { protect(&packet, from: payloadStart(packet)) }

    override func unprotectRTP(_ packet: inout PacketBuffer) -> Bool {
        let start = payloadStart(packet)
        return unprotect(&packet, from: start, 8)
    }

    /// An index makes equal packets differ, as SRTCP's does.
    override func protectRTCP(_ packet: inout PacketBuffer) -> Bool {
        index += 1
        packet.setUInt32(index, at: packet.count)
        packet.count += 4
        return protect(&packet, from: 8)
    }

    override func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool {
        guard unprotect(&packet, from: 8, 4), packet.count >= 12 else { return false }
        packet.count -= 4
        return true
    }

    override func forget(_ received: SSRC) { contexts.remove(received) }
}

/// Records an issue when a session encrypts a second packet under one index, and passes everything on to `Engine`.
final class CheckedSRTP<Engine: SRTPEngine>: SRTPEngine {
    let engine: Engine
    private var ledger = EncryptionLedger()

    required init(keys: inout SRTPKeys) throws {
        engine = try Engine(keys: &keys)
        try super.init(keys: &keys)
    }

    override func protectRTP(_ packet: inout PacketBuffer) -> Bool {
        if !ledger.record(packet) {
            let ssrc = packet.uint32(at: 8)
            let number = packet.uint16(at: 2)
            Issue.record("A session encrypts packet \(number) of SSRC \(ssrc) twice.")
        }
        return engine.protectRTP(&packet)
    }

    override func protectRTCP(_ packet: inout PacketBuffer) -> Bool { engine.protectRTCP(&packet) }

    override func unprotectRTP(_ packet: inout PacketBuffer) -> Bool { engine.unprotectRTP(&packet) }

    override func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool { engine.unprotectRTCP(&packet) }

    override func forget(_ received: SSRC) { engine.forget(received) }
}

extension PeerSession {
    /// A session with doubles.
    convenience init(_ handshake: HandshakeDouble, _ configuration: PeerSessionConfiguration) {
        self.init(dtls: handshake, configuration: configuration) { try CheckedSRTP<CipherDouble>(keys: &$0) }
    }
}
