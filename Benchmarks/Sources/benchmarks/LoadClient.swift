internal import Foundation
internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// A participant without media: it speaks the signalling and the transport as any client does, publishes made-up
/// packets, and checks those that it receives. All load clients share one loop.
actor LoadClient {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let name: String
    private let server: LoadServer
    private let line: any RoomSignalling
    private let certificate: Certificate
    private var down: Peer?
    private var receivers: [String: ReceiverID] = [:]
    /// The receiver of the stream that it subscribed to first.
    private var carrying: ReceiverID?
    /// The kind of its streams, and the length of their packets.
    private let media: StreamMedia
    private let length: Int
    private let reader: LoadReader?
    /// Whether it accepts transport-wide numbers, so that the server estimates its link and paces.
    private let reportsArrivals: Bool
    private var up: Peer?
    private var source: PacketSource?
    /// A receiver carries one stream.
    private var checking: [ReceiverID: SequenceCheck] = [:]
    private var profiles: [SRTPProfile] = []
    private var delays: LoopBound<DelayLog>?
    private var latencies: LoopBound<LatencyLog>?
    private var securing: [CheckedContinuation<Void, any Error>] = []
    private var starting: [CheckedContinuation<Void, Never>] = []
    /// When the first packet of the stream arrived, and the first packet of a keyframe.
    private(set) var started: (packet: MonotonicTime?, keyframe: MonotonicTime?) = (nil, nil)

    /// - Parameters:
    ///   - profiles: offered in DTLS; the server's preference decides.
    ///   - media: the kind of the streams that it receives. It publishes any.
    ///   - length: of whole packets, in bytes.
    ///   - local: the address that it connects from; nil for any.
    ///   - reader: reads its sockets, of which a loop may then have thousands; nil for sockets of libnice.
    ///   - reportsArrivals: whether it accepts transport-wide numbers, with which the server paces its packets.
    init(
        _ name: String, loop: EventLoop, server: LoadServer, profiles: [SRTPProfile], media: StreamMedia = .video,
        length: Int = LoadPacket.length, from local: String? = nil, reader: LoadReader? = nil,
        reportsArrivals: Bool = true
    ) async throws {
        self.name = name
        self.loop = loop
        self.server = server
        self.media = media
        self.length = length
        self.reader = reader
        self.reportsArrivals = reportsArrivals
        line = try await server.connect(from: local)
        certificate = try Certificate(profiles: profiles)
    }

    private func makePeer(_ role: ICERole) throws -> Peer {
        let peer =
            try reader.map { try makePeer(role, reader: $0) }
            ?? Peer(
                loop: loop,
                configuration: PeerConfiguration(
                    iceRole: role, certificate: certificate, cname: name, scope: .reaching(server.host)))
        peer.onEvent = { [weak self] event in self?.assumeIsolated { $0.handle(event) } }
        try peer.start()
        return peer
    }

    private func makePeer(_ role: ICERole, reader: LoadReader) throws -> Peer {
        let session = PeerSession(
            dtls: try OpenSSLDTLS(certificate: certificate),
            configuration: PeerSessionConfiguration(cname: name, seed: .random(in: UInt64.min...UInt64.max)),
            makeSRTP: { try OpenSSLSRTP(keys: &$0) })
        let (loop, host) = (loop, server.host)
        return try Peer(loop: loop, session: session, connectTimeout: .seconds(15)) { _, events, datagrams in
            LoadPath(loop: loop, reader: reader, role: role, server: host, events: events, datagrams: datagrams)
        }
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
        case .localCandidate, .gatheringDone, .connected, .disconnected, .pathLost, .rerouted, .lossBeyondRepair,
            .mediaRefused,
            .unauthenticated, .senderReport, .bye, .roundTrip, .sendingRate, .closed:
            break
        }
    }

    private func secured(_ peer: Peer) async throws {
        guard !peer.isSecured else { return }
        try await withCheckedThrowingContinuation { securing.append($0) }
    }

    /// Enters the room; returns when the down session is secured, if the server offers one already.
    func join(_ room: String) async throws {
        try await line.join(room) { try await self.answer($0) }
        if let down { try await secured(down) }
    }

    /// Opens the down session; returns the answer to the server's offer.
    private func answer(_ text: String) throws -> String {
        var offer = try SessionDescription(parsing: text)
        if !reportsArrivals { offer.removeTransportNumbers() }
        guard let remote = offer.transport else { throw BenchmarkError("The server's offer has no transport.") }
        let peer = try makePeer(remote.isLite ? .controlling : .controlled)
        down = peer
        for receiver in try DownDescription.receivers(in: offer) where receiver.media == media {
            let codecs = offer[mid: receiver.mid].map { NegotiatedCodec.all(in: $0) } ?? []
            let wanted = media == .audio ? Codec.opus : .vp8
            guard let codec = codecs.first(where: { $0.codec == wanted }) else { continue }
            receivers[receiver.mid] = peer.addReceiver(
                ReceiverConfiguration(
                    ssrc: receiver.ssrc,
                    retransmissionSSRC: receiver.retransmissionSSRC, mid: receiver.mid,
                    extensions: offer[mid: receiver.mid]?.sentExtensions ?? HeaderExtensionIDs(),
                    clockRate: wanted.clockRate,
                    payloadTypes: [codec.payloadType],
                    retransmissionPayloadTypes: codec.retransmissionPayloadType.map { [codec.payloadType: $0] } ?? [:],
                    nack: media == .video))
        }
        peer.onMedia = { [weak self] receiver, header, _, packet in
            self?.assumeIsolated { $0.take(packet, header, from: receiver) }
        }
        try peer.setRemote(remote, dtlsRole: .client)
        var local = peer.local
        local.setup = .active
        return DownDescription.answer(to: offer, sessionID: 1, transport: local).serialized()
    }

    private static let retransmission = Codec.vp8.retransmissionPayloadType.map { [Codec.vp8.payloadType: $0] } ?? [:]

    private func take(_ packet: borrowing PacketBuffer, _ header: RTPHeader, from receiver: ReceiverID) {
        if started.keyframe == nil { noteStart(packet, header) }
        checking[receiver, default: SequenceCheck(length: length)].take(packet, header)
        if let delays, let number = checking[receiver]?.last { delays.value.received(number, at: loop.now) }
        latencies?.value.add(sent: LoadPacket.sendTime(of: packet, header), received: loop.now)
    }

    private func noteStart(_ packet: borrowing PacketBuffer, _ header: RTPHeader) {
        let now = loop.now
        started.packet = started.packet ?? now
        guard LoadPacket.isKeyframeStart(packet, header) else { return }
        started.keyframe = now
        for waiter in starting { waiter.resume() }
        starting = []
    }

    /// Waits for a keyframe.
    func start() async {
        guard started.keyframe == nil else { return }
        await withCheckedContinuation { starting.append($0) }
    }

    func subscribe(_ stream: Int) async throws { try await subscribe([stream]) }

    /// Call it once.
    func subscribe(_ streams: [Int]) async throws {
        if media == .audio, server.assignsAudio { return }
        let mids = try await line.subscribe(to: streams) { try await self.answer($0) }
        carrying = mids.first.flatMap { receivers[$0] }
        guard mids.allSatisfy({ receivers[$0] != nil }), let down else {
            throw BenchmarkError("The server sends the stream on no m-line.")
        }
        try await secured(down)
    }

    /// The counts of all its receivers together.
    var check: SequenceCheck {
        checking.values.reduce(into: SequenceCheck(length: length)) { $0.add($1) }
    }

    /// Packets of the down session that the SRTP engine refused.
    var refused: Int { down?.statistics.session.dropped.authenticationFailures ?? 0 }

    /// Collects the time from sending to receiving of each packet.
    func log(latencies: LoopBound<LatencyLog>?) { self.latencies = latencies }

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
        let (answer, stream) = try await line.publish(offer.serialized())
        guard let remote = try SessionDescription(parsing: answer).transport else {
            throw BenchmarkError("The server's answer has no transport.")
        }
        try peer.setRemote(remote, dtlsRole: remote.setup == .passive ? .client : .server)
        let sender = peer.addSender(
            SenderConfiguration(
                ssrc: ssrc, retransmissionSSRC: retransmissionSSRC,
                clockRate: codec.clockRate, retransmissionPayloadTypes: isVideo ? Self.retransmission : [:]))
        // Sender reports go out as those of a real publisher do.
        let wall = UInt64(Date().timeIntervalSince1970 * 1e9)
        peer.setClock(sender, ntp: NTPTime(unixNanoseconds: wall), rtp: RTPTimestamp(0), at: loop.now)
        source = PacketSource(
            loop: loop, peer: peer, sender: sender, ssrc: ssrc, codec: codec, length: length)
        try await secured(peer)
        return stream
    }

    /// Sends bursts of packets; returns when the last has been given to the socket.
    func send(
        bursts: Int, of length: Int, every interval: RTP.TimeInterval, after delay: RTP.TimeInterval = .zero
    ) async {
        guard let source else { return }
        await withCheckedContinuation { continuation in
            source.run(bursts: bursts, length: length, interval: interval, after: delay) { continuation.resume() }
        }
    }

    /// Ends `send`.
    func stopSending() { source?.stop() }

    var sent: UInt64 { source?.sent ?? 0 }

    /// Keyframes sent.
    var keyframes: Int { source?.keyframes ?? 0 }

    func leave() async {
        await line.leave()
        source?.stop()
        down?.close()
        up?.close()
        down = nil
        up = nil
    }
}

extension SessionDescription {
    /// Makes an offer without transport-wide numbers of it.
    fileprivate mutating func removeTransportNumbers() {
        for index in media.indices { media[index].extensions.removeAll { $0.kind == .transportNumber } }
    }
}
