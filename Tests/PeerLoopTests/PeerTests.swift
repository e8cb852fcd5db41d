import PeerLoop
import RTP
import Testing

@testable import PeerSession

@Suite struct PeerTests {
    @Test func `a forwarded packet after a silence brings reports back to their usual interval`() throws {
        let pair = try Pair()
        defer { pair.close() }
        pair.forward()
        pair.run(for: .seconds(30))
        let reports = pair.reports.count
        pair.run(for: .seconds(20))
        // Every 5 s on average, at least 2.5 s apart.
        #expect((2...8).contains(pair.reports.count - reports))

        // The receiver's own reports would wake the sender.
        pair.answersArrive = false
        let resumed = pair.loop.now
        pair.forward()
        pair.run(for: .seconds(10))
        let next = try #require(pair.reports.first { $0 > resumed })
        #expect(next - resumed <= .milliseconds(1500))
    }

    @Test func `a member that another one adds sends early too`() {
        final class Member: TurnMember {
            var onSend: () -> Void = {}
            func endTurn() {}
            func sendEarly() { onSend() }
        }
        let loop = Loop(now: MonotonicTime(nanoseconds: 1))
        let (peer, port) = (Member(), Member())
        var sent = 0
        peer.onSend = { loop.atEndOfTurn(port) }
        port.onSend = { sent += 1 }
        loop.atEndOfTurn(peer)
        loop.sendEarly()
        #expect(sent == 1)
    }

    @Test func `a stall of the loop does not count as a delay of the path`() throws {
        let pair = try Pair()
        defer { pair.close() }
        pair.number()
        for _ in 0..<100 {
            pair.forward()
            pair.run(for: .milliseconds(10))
        }
        let before = try #require(pair.sender.statistics.session.sending)
        // The reports about the last packets wait for the loop.
        pair.forward()
        pair.run(for: .zero)
        pair.loop.now = pair.loop.now + .seconds(2)
        pair.loop.noteStall(of: .milliseconds(19))
        #expect(pair.loop.stalled == .zero, "Too short to matter.")
        pair.loop.noteStall(of: .seconds(2))
        pair.run(for: .milliseconds(300))
        let after = try #require(pair.sender.statistics.session.sending)
        #expect(after.targetBitsPerSecond >= before.targetBitsPerSecond)
        #expect((after.roundTrip ?? .zero) < .milliseconds(300), "\(after)")
    }

    @Test func `a peer knows how media travelled after its path is lost`() throws {
        let pair = try Pair()
        defer { pair.close() }
        let route = try #require(pair.sender.route)
        pair.losePath()
        #expect(pair.sender.selectedPair == nil)
        #expect(pair.sender.route == route)
    }

    @Test func `impairment drops packets of a batch, and the others arrive`() throws {
        let pair = try Pair()
        defer { pair.close() }
        pair.sender.impairment = Impairment(seed: 5, outgoingLoss: 0.5)
        for _ in 0..<200 { pair.forward() }
        pair.run(for: .milliseconds(1))
        let statistics = pair.sender.statistics
        #expect((50...150).contains(statistics.datagramsImpaired))
        #expect(pair.received + statistics.datagramsImpaired == 200)
    }

    @Test func `a loop counts the packets that its sessions drop instead of sending them`() throws {
        let pair = try Pair()
        defer { pair.close() }
        for length in [4, 1401, 4, 1401, 4] { pair.forward(payload: length) }
        pair.run(for: .milliseconds(1))
        #expect(pair.received == 3)
        #expect(pair.loop.traffic.unprotectable == 2)
        pair.forward(payload: 1401)
        pair.forward()
        pair.run(for: .milliseconds(1))
        #expect(pair.loop.traffic.unprotectable == 3 && pair.loop.traffic.outgoingFull == 0)
    }
}

/// Two peers on one loop and on virtual time, whose paths carry each datagram at once.
private final class Pair {
    let loop = Loop(now: MonotonicTime(nanoseconds: 1_000_000_000))
    let sender: Peer
    private let receiver: Peer
    private let paths: [DirectPath]
    private let store = PacketStore()
    private let stream: SenderID
    private let receiving: ReceiverID
    private var nextNumber = SequenceNumber(1)
    private(set) var received = 0
    /// Whether the receiver's datagrams reach the sender.
    var answersArrive = true
    /// When RTCP of the sender arrived.
    private(set) var reports: [MonotonicTime] = []

    init() throws {
        var paths: [DirectPath] = []
        var peers: [Peer] = []
        for name: UInt8 in [1, 2] {
            let session = PeerSession(
                dtls: ConnectedHandshake(name),
                configuration: PeerSessionConfiguration(cname: "\(name)", seed: UInt64(name)),
                makeSRTP: { try PlainSRTP(keys: &$0) })
            peers.append(
                try Peer(loop: loop, session: session, connectTimeout: .seconds(5)) { [loop] _, events, datagrams in
                    let path = DirectPath(loop: loop, events, datagrams)
                    paths.append(path)
                    return path
                })
        }
        (sender, receiver) = (peers[0], peers[1])
        self.paths = paths
        for (peer, other) in [(sender, receiver), (receiver, sender)] {
            try peer.start()
            try peer.setRemote(other.local, dtlsRole: peer === sender ? .client : .server)
        }
        stream = sender.addSender(SenderConfiguration(ssrc: SSRC(7), clockRate: 90000))
        receiving = receiver.addReceiver(
            ReceiverConfiguration(
                ssrc: SSRC(7), mid: "0", clockRate: 90000, payloadTypes: [96], nack: false))
        receiver.onMedia = { [unowned self] _, _, _, _ in received += 1 }
        for path in paths { path.events(.connected) }
        carry()
        precondition(sender.isSecured && receiver.isSecured)
    }

    /// Ends the path of the sender, as the end of the TCP connection to a TURN server does.
    func losePath() {
        paths[0].selectedPair = nil
        paths[0].events(.failed)
        carry()
    }

    /// Numbers the packets of the transport from now on.
    func number() {
        sender.setExtensions(HeaderExtensionIDs(transportNumber: 2), of: stream)
        receiver.setExtensions(HeaderExtensionIDs(transportNumber: 2), of: receiving)
    }

    /// Sends one packet.
    func forward(payload length: Int = 4) {
        var packet = PacketBuffer()
        packet.append(([0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7] + [UInt8](repeating: 1, count: length)).span)
        let payload = store.add(packet, 12..<(12 + length), timestamp: RTPTimestamp(0), marker: true, now: loop.now)
        let rewrite = Rewrite(
            payloadType: 96, sequenceNumber: nextNumber, timestamp: RTPTimestamp(0), marker: true)
        nextNumber = nextNumber.advanced(by: 1)
        sender.forward(payload, of: store, rewrite: rewrite, via: stream)
    }

    /// Ends turns until no datagram is on its way.
    private func carry() {
        loop.endTurn()
        while let index = paths.firstIndex(where: { !$0.sent.isEmpty }) {
            let datagrams = paths[index].sent
            paths[index].sent = []
            for datagram in datagrams {
                if index == 0, (200...207).contains(datagram[1]) { reports.append(loop.now) }
                if index == 0 || answersArrive { paths[1 - index].datagrams(datagram.span) }
            }
            loop.endTurn()
        }
    }

    func run(for interval: TimeInterval) {
        let end = loop.now + interval
        carry()
        while loop.nextTimer <= end {
            loop.now = max(loop.now, loop.nextTimer)
            while loop.fireNextTimer() {}
            carry()
        }
        loop.now = end
    }

    func close() {
        for peer in [sender, receiver] { peer.close() }
        loop.endTurn()
    }
}

private final class DirectPath: PeerPath {
    let ufrag = "ufrag"
    let password = "password-of-22-letters"
    let isLite = true
    let consent = TimeInterval.seconds(30)
    var selectedPair: (local: String, remote: String)? = ("192.0.2.1:1", "192.0.2.2:2")
    let events: (ICEEvent) -> Void
    let datagrams: (Span<UInt8>) -> Void
    var sent: [[UInt8]] = []
    private let loop: Loop

    init(loop: Loop, _ events: @escaping (ICEEvent) -> Void, _ datagrams: @escaping (Span<UInt8>) -> Void) {
        self.loop = loop
        self.events = events
        self.datagrams = datagrams
    }

    func gather() {}
    func setRemote(ufrag: String, password: String) -> Bool { true }
    func close() {}

    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        loop.withBatch(fill) { batch in
            for index in 0..<batch.count { sent.append(Array(batch[index])) }
            return (batch.count, 0)
        }
    }
}

/// A handshake that is done when it starts.
private final class ConnectedHandshake: DTLSEngine {
    let localFingerprint: Fingerprint
    private(set) var progress = DTLSProgress.handshaking
    let nextTimeout = MonotonicTime.never

    init(_ name: UInt8) { localFingerprint = Fingerprint(algorithm: "sha-256", digest: [name]) }

    func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime) {
        progress = .connected(.aeadAES128GCM)
    }

    func exportKeys() -> SRTPKeys? { SRTPKeys(profile: .aeadAES128GCM, local: [1], remote: [1]) }
    func receive(_ datagram: borrowing PacketBuffer, now: MonotonicTime) {}
    func handleTimeout(now: MonotonicTime) {}
    func drain(into batch: inout DatagramBatch) {}
    func release() {}
    func close() {}
}

/// Encrypts nothing.
private final class PlainSRTP: SRTPEngine {
    override func protectRTP(_ packet: inout PacketBuffer) -> Bool { true }
    override func unprotectRTP(_ packet: inout PacketBuffer) -> Bool { true }
    override func protectRTCP(_ packet: inout PacketBuffer) -> Bool { true }
    override func unprotectRTCP(_ packet: inout PacketBuffer) -> Bool { true }
}
