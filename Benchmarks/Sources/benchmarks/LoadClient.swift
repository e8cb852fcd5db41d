internal import Foundation
internal import PeerIO
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// A participant without media: it speaks the signalling and the transport as any client does, publishes made-up
/// packets, and checks those that it receives. All load clients share one loop.
actor LoadClient {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let name: String
    private let line: SignallingLine
    private let certificate: Certificate
    private var down: Peer?
    private var receivers: [String: ReceiverID] = [:]
    private var carrying: ReceiverID?
    private var up: Peer?
    private var source: PacketSource?
    private var checking = SequenceCheck()
    private var profiles: [SRTPProfile] = []
    private var delays: LoopBound<DelayLog>?
    private var securing: [CheckedContinuation<Void, any Error>] = []

    /// - Parameter profiles: what the client offers in DTLS; the server's preference decides.
    init(_ name: String, loop: EventLoop, port: Int, profiles: [SRTPProfile]) async throws {
        self.name = name
        self.loop = loop
        line = try await SignallingLine.open(port: port)
        certificate = try Certificate(profiles: profiles)
    }

    private func makePeer(_ role: ICERole) throws -> Peer {
        let peer = try Peer(
            loop: loop, configuration: PeerConfiguration(iceRole: role, certificate: certificate, cname: name))
        peer.onEvent = { [weak self] event in self?.assumeIsolated { $0.handle(event) } }
        try peer.start()
        return peer
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .secured(let profile):
            profiles.append(profile)
            for waiter in securing { waiter.resume() }
            securing = []
        case .keyframeRequested: source?.keyframeRequested()
        case .failed(let error):
            for waiter in securing { waiter.resume(throwing: error) }
            securing = []
        case .localCandidate, .gatheringDone, .connected, .disconnected, .lossBeyondRepair, .mediaRefused,
            .unauthenticated, .senderReport, .bye, .roundTrip, .closed:
            break
        }
    }

    private func secured(_ peer: Peer) async throws {
        guard !peer.isSecured else { return }
        try await withCheckedThrowingContinuation { securing.append($0) }
    }

    /// Enters the room; returns when the down session is secured.
    func join(_ room: String, token: String) async throws -> Joined {
        guard case .joined(let joined) = try await line.request(.join(Join(token: token, room: room))) else {
            throw BenchmarkError("The server did not answer 'join'.")
        }
        let description = try await line.offer()
        let offer = try SessionDescription(parsing: description.sdp)
        guard let remote = offer.transport else { throw BenchmarkError("The server's offer has no transport.") }
        let peer = try makePeer(.controlled)
        down = peer
        for receiver in try DownDescription.receivers(in: offer) where receiver.media == .video {
            receivers[receiver.mid] = peer.addReceiver(
                ReceiverConfiguration(
                    kind: .video, ssrc: receiver.ssrc, retransmissionSSRC: receiver.retransmissionSSRC,
                    mid: receiver.mid, clockRate: Codec.vp8.clockRate, payloadTypes: [Codec.vp8.payloadType],
                    retransmissionPayloadTypes: Self.retransmission, nack: true))
        }
        peer.onMedia = { [weak self] receiver, header, _, packet in
            self?.assumeIsolated { $0.take(packet, header, from: receiver) }
        }
        try peer.setRemote(remote, dtlsRole: .client)
        var local = peer.local
        local.setup = .active
        let answer = DownDescription.answer(to: offer, sessionID: 1, transport: local)
        line.send(
            .answer(Description(session: .down, sdp: answer.serialized(), revision: description.revision)))
        try await secured(peer)
        return joined
    }

    private static let retransmission = Codec.vp8.retransmissionPayloadType.map { [Codec.vp8.payloadType: $0] } ?? [:]

    private func take(_ packet: borrowing PacketBuffer, _ header: RTPHeader, from receiver: ReceiverID) {
        guard receiver == carrying else { return }
        checking.take(packet, header)
        if let number = checking.last { delays?.value.received(number, at: loop.now) }
    }

    func subscribe(_ stream: Int) async throws {
        guard case .subscribed(let answer) = try await line.request(.subscribe(StreamReference(stream: stream))) else {
            throw BenchmarkError("The server did not answer 'subscribe'.")
        }
        carrying = receivers[answer.mid]
    }

    var check: SequenceCheck { checking }

    /// Logs when packets are sent and when they are received.
    func log(delays: LoopBound<DelayLog>) {
        self.delays = delays
        source?.onSend = { [loop] number in delays.value.sent(number, at: loop.now) }
    }

    /// The negotiated profiles, that of the down session first.
    var negotiated: [SRTPProfile] { profiles }

    /// Packets lost on the way from the server and recovered.
    var lostAndRecovered: (lost: Int, recovered: Int) {
        guard let down, let carrying, let statistics = down.statistics(of: carrying) else { return (0, 0) }
        return (statistics.lost, statistics.recovered)
    }

    /// Publishes one stream; returns its id when the up session is secured.
    func publish(_ codec: Codec = .vp8) async throws -> Int {
        let peer = try makePeer(.controlling)
        up = peer
        let ssrc = SSRC(0x0bad_cafe)
        let isVideo = codec.media == .video
        let retransmissionSSRC = isVideo ? SSRC(0x0bad_caff) : nil
        let offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: codec, ssrc: ssrc, retransmissionSSRC: retransmissionSSRC)],
            transport: peer.local, cname: name)
        let request = Publish(sdp: offer.serialized(), streams: [Publish.Stream(mid: "0")])
        guard case .published(let published) = try await line.request(.publish(request)),
            let stream = published.streams.first?.stream,
            let remote = try SessionDescription(parsing: published.sdp).transport
        else { throw BenchmarkError("The server did not answer 'publish'.") }
        try peer.setRemote(remote, dtlsRole: remote.setup == .passive ? .client : .server)
        let sender = peer.addSender(
            SenderConfiguration(
                kind: isVideo ? .video : .audio, ssrc: ssrc, retransmissionSSRC: retransmissionSSRC,
                clockRate: codec.clockRate, retransmissionPayloadTypes: isVideo ? Self.retransmission : [:]))
        // Sender reports go out as those of a real publisher do.
        let wall = UInt64(Date().timeIntervalSince1970 * 1e9)
        peer.setClock(sender, ntp: NTPTime(unixNanoseconds: wall), rtp: RTPTimestamp(0), at: loop.now)
        source = PacketSource(
            loop: loop, peer: peer, sender: sender, ssrc: ssrc, payloadType: codec.payloadType)
        try await secured(peer)
        return stream
    }

    /// Sends bursts of packets; returns when the last has been given to the socket.
    func send(bursts: Int, of length: Int, every interval: RTP.TimeInterval) async {
        guard let source else { return }
        await withCheckedContinuation { continuation in
            source.run(bursts: bursts, length: length, interval: interval) { continuation.resume() }
        }
    }

    var sent: UInt64 { source?.sent ?? 0 }

    func leave() async {
        _ = try? await line.request(.leave)
        source?.stop()
        down?.close()
        up?.close()
        down = nil
        up = nil
    }
}
