internal import PeerSession
internal import RTP

/// A stand-in for DTLS: four flights with fingerprints, retransmissions and alerts, without cryptography. Both ends check
/// the other's fingerprint, and derive the same keys from both.
final class Handshake: DTLSEngine {
    private static let alert: [UInt8] = [21, 0]

    let localFingerprint: Fingerprint
    private(set) var progress = DTLSProgress.handshaking
    private(set) var nextTimeout = MonotonicTime.never
    private var role = DTLSRole.client
    private var expected: [Fingerprint] = []
    private var remote: [UInt8] = []
    private var waiting: [[UInt8]] = []
    private var flight: [UInt8] = []
    private var interval = TimeInterval.milliseconds(50)
    private var hasStarted = false

    /// - Parameter name: what the fingerprint is made of; another one for each session.
    init(name: UInt64) {
        localFingerprint = Fingerprint(
            algorithm: "sha-256",
            digest: (0..<32).map { UInt8(truncatingIfNeeded: (name ^ UInt64($0 / 8)) >> UInt64(8 * ($0 % 8))) })
    }

    func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime) {
        guard !hasStarted else { return }
        hasStarted = true
        self.role = role
        expected = fingerprints
        if role == .client { say([22, 1], now: now) }
    }

    private func say(_ flight: [UInt8], now: MonotonicTime) {
        self.flight = flight
        waiting.append(flight)
        interval = .milliseconds(50)
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
        case (.client, 2): if isExpected(bytes) { say([22, 3] + localFingerprint.digest, now: now) }
        case (.server, 3):
            guard isExpected(bytes) else { return }
            waiting.append([22, 4])
            finish()
        case (.client, 4): finish()
        default: break
        }
    }

    private func isExpected(_ bytes: [UInt8]) -> Bool {
        remote = Array(bytes.dropFirst(2))
        if expected.contains(where: { $0.digest == remote }) { return true }
        progress = .failed("The peer's certificate has another fingerprint than its description.")
        nextTimeout = .never
        return false
    }

    private func finish() {
        nextTimeout = .never
        if case .handshaking = progress { progress = .connected(.aeadAES128GCM) }
    }

    func handleTimeout(now: MonotonicTime) {
        guard nextTimeout <= now else { return }
        waiting.append(flight)
        interval = min(interval * 2, .seconds(2))
        nextTimeout = now + interval
    }

    func drain(into batch: inout DatagramBatch) {
        for datagram in waiting { batch.append(datagram) }
        waiting = []
    }

    func exportKeys() -> SRTPKeys? {
        guard case .connected(let profile) = progress else { return nil }
        func key(_ sender: [UInt8], _ receiver: [UInt8]) -> [UInt8] {
            let count = profile.keyLength + profile.saltLength
            return (0..<count).map { sender[$0 % 32] ^ (receiver[($0 + 7) % 32] &* 31) &+ UInt8($0) }
        }
        let own = localFingerprint.digest
        return SRTPKeys(profile: profile, local: key(own, remote), remote: key(remote, own))
    }

    func release() {}

    func close() { waiting.append(Self.alert) }
}
