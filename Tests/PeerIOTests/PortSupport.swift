import ICELite
import PeerSession
import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

/// A media port on a loop of its own for the length of a test.
func withPort(
    at address: String = "127.0.0.1", consent: TimeInterval = MediaPort.consent,
    _ body: (LoopBound<MediaPort>, EventLoop) async throws -> Void
) async throws {
    let loop = EventLoop(name: "port")
    let port = try await onLoop(loop) {
        Result { () throws(TransportError) in
            LoopBound(try MediaPort(loop: loop, address: address, port: 0, consent: consent), loop: loop)
        }
    }.get()
    let result: Result<Void, any Error>
    do {
        result = .success(try await body(port, loop))
    } catch {
        result = .failure(error)
    }
    await onLoop(loop) { port.value.close() }
    loop.shutdown()
    try result.get()
}

/// A call whose answerer is on the port.
func begin(on port: LoopBound<MediaPort>, _ change: (inout Call.Options) -> Void = { _ in }) async throws -> Call {
    var options = Call.Options()
    options.answererPort = port
    change(&options)
    return try await Call.begin(on: port.loop, options)
}

/// The other end of a peer on a port, without an ICE agent: it makes its own checks, and can break every rule.
///
/// It has a socket, and may use others in addition. Nothing happens on its own: `exchange` receives and sends.
final class BareClient {
    static let ufrag = "bare"
    static let password = "0123456789012345678901"

    let socket: Attacker
    /// The connection to use instead of the socket.
    var stream: FramedStream?
    /// The end on the port.
    let server: LoopBound<End>
    let local: TransportDescription
    let session: PeerSession
    /// Media packets from the port's end.
    private(set) var received = 0
    /// Datagrams of any kind from the port, and their bytes.
    private(set) var datagrams: [[UInt8]] = []
    private let port: UInt16
    private var transactions: UInt64 = 0

    /// Opens a peer on the port and gives it the description of this end.
    init(
        on port: LoopBound<MediaPort>, certificate: Certificate, socket: Attacker = Attacker(),
        configure: @escaping @Sendable (Peer) -> Void = { _ in }
    ) async throws {
        self.socket = socket
        session = PeerSession(
            dtls: try OpenSSLDTLS(certificate: certificate),
            configuration: PeerSessionConfiguration(cname: "bare", seed: 1),
            makeSRTP: { try OpenSSLSRTP(keys: &$0) })
        _ = session.addReceiver(
            ReceiverConfiguration(
                ssrc: Call.video, mid: "v", clockRate: 90000, payloadTypes: [96], nack: false))
        let description = TransportDescription(
            iceUfrag: Self.ufrag, icePwd: Self.password, fingerprints: [certificate.fingerprint], setup: .active)
        let opened = try await onLoop(port.loop) {
            Result {
                var configuration = PeerConfiguration(
                    iceRole: .controlled, certificate: certificate, cname: "port", scope: .loopback)
                configuration.port = port
                let end = try End(loop: port.loop, configuration: configuration)
                configure(end.peer)
                try end.peer.start()
                try end.peer.setRemote(description, dtlsRole: .server)
                return (LoopBound(end, loop: port.loop), end.peer.local, port.value.number)
            }
        }.get()
        (server, local, self.port) = opened
    }

    func close() async {
        let server = self.server
        await onLoop(server.loop) { server.value.peer.close() }
        await onLoop(server.loop) {}
    }

    /// A check of the session, with the password of the port's end unless another is given.
    func check(nominates: Bool = true, password: String? = nil, priority: UInt32 = 100) -> [UInt8] {
        transactions += 1
        return connectivityCheck(
            "\(local.iceUfrag):\(Self.ufrag)", password: password ?? local.icePwd, nominates: nominates,
            priority: priority, transaction: transactions)
    }

    func send(_ datagram: [UInt8]) {
        if let stream { stream.send(datagram) } else { socket.send(datagram, to: port) }
    }

    private func nextDatagram() -> [UInt8]? { stream.map { $0.receive() } ?? socket.receive()?.0 }

    /// Encrypts reports and feedback, and sends them.
    func say(_ packets: [RTCPPacket]) {
        var buffer = PacketBuffer()
        for packet in packets { _ = packet.append(to: &buffer, limit: PacketBuffer.capacity - 64) }
        say(Array(buffer.bytes[..<buffer.count]))
    }

    /// Encrypts RTCP, valid or not, and sends it.
    func say(_ control: [UInt8]) {
        var buffer = PacketBuffer()
        guard buffer.assign(control), session.srtp?.protectRTCP(&buffer) == true else { return }
        send(Array(buffer.bytes[..<buffer.count]))
    }

    /// Handles the datagrams that wait, and sends what is due.
    func exchange() {
        let now = EventLoop.now
        while let datagram = nextDatagram() {
            datagrams.append(datagram)
            guard let first = datagram.first, first > 3 else { continue }
            var buffer = PacketBuffer()
            _ = buffer.assign(datagram)
            if case .media = session.receive(&buffer, now: now) { received += 1 }
        }
        if session.nextTimeout <= now { session.handleTimeout(now: now) }
        while session.pollEvent() != nil {}
        var batch = DatagramBatch()
        session.drain(into: &batch)
        for index in 0..<batch.count { send(Array(batch[index])) }
    }

    /// Handles one datagram of those that wait.
    func exchangeOne() {
        guard let datagram = nextDatagram() else { return }
        var buffer = PacketBuffer()
        _ = buffer.assign(datagram)
        if case .media = session.receive(&buffer, now: EventLoop.now) { received += 1 }
    }

    /// Waits until so many media packets packets have arrived in all. Returns whether they have.
    func receives(_ count: Int) async -> Bool {
        await eventually {
            exchange()
            return received >= count
        }
    }

    /// Checks a pair, nominates it, and completes the handshake. Returns whether both ends have keys.
    func connect() async -> Bool {
        session.start(role: .client, expecting: local.fingerprints, now: EventLoop.now)
        session.transportConnected(now: EventLoop.now)
        let server = self.server
        return await eventually {
            send(check())
            exchange()
            guard session.isSecured else { return false }
            return await onLoop(server.loop) { server.value.peer.isSecured }
        }
    }
}

/// A Binding request of a controlling end. Nil leaves out MESSAGE-INTEGRITY, FINGERPRINT or USERNAME.
func connectivityCheck(
    _ username: String?, password: String?, nominates: Bool = true, priority: UInt32 = 100, transaction: UInt64 = 1,
    hasFingerprint: Bool = true, others: [(type: UInt16, count: Int)] = []
) -> [UInt8] {
    var packet = PacketBuffer()
    packet.beginSTUN(.request, STUNTransaction(high: 1, low: transaction))
    if let username {
        let place = packet.addAttribute(STUNAttribute.username, count: username.utf8.count)
        for (index, byte) in username.utf8.enumerated() { packet.bytes[place + index] = byte }
    }
    packet.setUInt32(priority, at: packet.addAttribute(STUNAttribute.priority, count: 4))
    if nominates { _ = packet.addAttribute(STUNAttribute.useCandidate, count: 0) }
    packet.setUInt64(1, at: packet.addAttribute(STUNAttribute.iceControlling, count: 8))
    for (type, count) in others { _ = packet.addAttribute(type, count: count) }
    if let password { packet.addIntegrity(with: OpenSSLSTUNKey(password: Array(password.utf8))) }
    if hasFingerprint { packet.addFingerprint() }
    return Array(packet.bytes[..<packet.count])
}

/// The message with the FINGERPRINT that it should have.
func resealed(_ message: [UInt8]) -> [UInt8] {
    var packet = PacketBuffer()
    _ = packet.assign(message.dropLast(8))
    packet.addFingerprint()
    // The header's length is that of the message.
    packet.bytes[2] = message[2]
    packet.bytes[3] = message[3]
    return Array(packet.bytes[..<packet.count])
}
