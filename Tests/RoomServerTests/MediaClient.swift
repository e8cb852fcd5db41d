import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

/// Runs the closure on the loop and returns its result.
func onLoop<Result: Sendable>(_ loop: EventLoop, _ body: @Sendable () -> Result) async -> Result {
    await OnExecutor(loop).run(body)
}

/// One session of a client. On its loop only.
final class MediaSession {
    let peer: Peer
    private(set) var senders: [SenderID] = []
    private(set) var isSecured = false
    /// Whether everything is lost in both directions from the moment when media could flow.
    var losesMedia = false
    private(set) var keyframeRequests = 0
    var onKeyframeRequest: (() -> Void)?
    private(set) var lossesBeyondRepair = 0
    private(set) var senderReports = 0
    private var sent = 0
    private(set) var received: [RTPHeader] = []
    /// The received packets of a `FrameSource`.
    private(set) var frames: [FrameSource.Frame] = []

    /// - Parameter certificate: nil for a new one.
    init(loop: EventLoop, role: ICERole, certificate: Certificate? = nil) throws {
        let certificate = try certificate ?? Certificate()
        var configuration = PeerConfiguration(iceRole: role, certificate: certificate, cname: "test")
        // One byte more than the server forwards.
        configuration.maximumPacketLength = PeerSessionConfiguration.standardPacketLength + 1
        peer = try Peer(loop: loop, configuration: configuration)
        peer.onEvent = { [unowned self] event in
            switch event {
            case .secured:
                isSecured = true
                if losesMedia { peer.impairment = .cut }
            case .keyframeRequested:
                keyframeRequests += 1
                onKeyframeRequest?()
            case .lossBeyondRepair: lossesBeyondRepair += 1
            case .senderReport: senderReports += 1
            case .localCandidate, .gatheringDone, .connected, .disconnected, .pathLost, .rerouted, .mediaRefused,
                .unauthenticated,
                .bye,
                .roundTrip, .sendingRate, .closed, .failed:
                break
            }
        }
        peer.onMedia = { [unowned self] _, header, _, packet in
            received.append(header)
            if let frame = FrameSource.Frame(header, packet) { frames.append(frame) }
        }
        try peer.start()
    }

    // MARK: - Publishing

    /// Adds a sender for each codec, and returns the offer of all of them. `midExtension` is the id of the header
    /// extension with the mid.
    func offer(_ codecs: [Codec], midExtension: UInt8? = nil, lie: Fingerprint? = nil) -> Publish {
        let new = codecs.enumerated().map { index, codec in
            Sender(mid: String(index), codec: codec, ssrc: SSRC(UInt32(5000 + 2 * index)), retransmissionSSRC: nil)
        }
        for sender in new {
            addSender(
                sender.codec, sender.ssrc, mid: midExtension == nil ? nil : sender.mid, midExtension: midExtension)
        }
        var local = peer.local
        if let lie { local.fingerprints = [lie] }
        var offer = UpDescription.offer(sessionID: 1, version: 1, senders: new, transport: local, cname: "test")
        if let midExtension {
            let header = HeaderExtension(id: midExtension, .mid)
            for index in offer.media.indices { offer.media[index].extensions = [header] }
        }
        return Publish(sdp: offer.serialized(), streams: new.map { .init(mid: $0.mid) })
    }

    /// An offer of one stream more, with capture times.
    func offerMore(midExtension: UInt8, captureTime: UInt8) -> Publish {
        let all = senders.indices.map { index in
            Sender(mid: String(index), codec: .vp8, ssrc: SSRC(UInt32(5000 + 2 * index)), retransmissionSSRC: nil)
        }
        let new = Sender(mid: String(all.count), codec: .vp8, ssrc: SSRC(9000), retransmissionSSRC: nil)
        var offer = UpDescription.offer(
            sessionID: 1, version: 2, senders: all + [new], transport: peer.local, cname: "test")
        for index in offer.media.indices {
            offer.media[index].extensions = [
                HeaderExtension(id: midExtension, .mid), HeaderExtension(id: captureTime, .captureTime),
            ]
        }
        for sender in senders {
            peer.setExtensions(HeaderExtensionIDs(mid: midExtension, captureTime: captureTime), of: sender)
        }
        return Publish(sdp: offer.serialized(), streams: [.init(mid: new.mid)])
    }

    /// The offer of the first sender once more.
    var reoffer: Publish {
        let sender = Sender(mid: "0", codec: .vp8, ssrc: SSRC(5000), retransmissionSSRC: nil)
        let offer = UpDescription.offer(
            sessionID: 1, version: 2, senders: [sender], transport: peer.local, cname: "test")
        return Publish(sdp: offer.serialized(), streams: [.init(mid: "0")])
    }

    func addSender(_ codec: Codec, _ ssrc: SSRC, mid: String? = nil, midExtension: UInt8? = nil) {
        senders.append(
            peer.addSender(
                SenderConfiguration(
                    ssrc: ssrc, clockRate: codec.clockRate, mid: mid,
                    extensions: HeaderExtensionIDs(mid: midExtension))))
    }

    /// Connects to the server with its answer to the offer.
    func connect(by published: Published) throws {
        guard let transport = try SessionDescription(parsing: published.sdp).transport else {
            throw RoomError(.offerRefused, "The answer has no transport.")
        }
        try peer.setRemote(transport, dtlsRole: transport.setup == .active ? .server : .client)
    }

    /// Sends the next packets of synthetic VP8.
    func send(next count: Int, keyframe: Bool = false) {
        send(sent..<(sent + count), keyframe: keyframe)
        sent += count
    }

    /// Sends packets of synthetic media, each a complete frame.
    func send(
        _ numbers: Range<Int>, keyframe: Bool = false, sender: Int = 0, payload length: Int = 7, as codec: Codec = .vp8
    ) {
        for number in numbers {
            send(vp8(number, keyframe: keyframe, payload: length, as: codec), via: senders[sender])
        }
    }

    /// Sends a keyframe with its capture time.
    func send(captured time: AbsoluteCaptureTime, sender: Int = 0) {
        send(vp8(sent, keyframe: true), via: senders[sender], captured: time)
        sent += 1
    }

    func send(_ packet: consuming PacketBuffer, via sender: SenderID, captured time: AbsoluteCaptureTime? = nil) {
        guard var header = RTPHeader(parsing: packet) else { return }
        header.captureTime = time
        peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender)
    }

    // MARK: - Watching

    /// Accepts the server's offer. Returns the answer.
    func answer(_ offer: SessionDescription, lie: Fingerprint? = nil) throws -> SessionDescription {
        for receiver in try DownDescription.receivers(in: offer) {
            _ = peer.addReceiver(
                ReceiverConfiguration(
                    ssrc: receiver.ssrc,
                    retransmissionSSRC: receiver.retransmissionSSRC, mid: receiver.mid,
                    extensions: HeaderExtensionIDs(offer[mid: receiver.mid]?.extensions ?? []),
                    clockRate: receiver.media == .audio ? 48000 : 90000,
                    payloadTypes: Set(Codec.of(receiver.media).map(\.payloadType)), nack: false))
        }
        guard let transport = offer.transport else { throw RoomError(.offerRefused, "The offer has no transport.") }
        try peer.setRemote(transport, dtlsRole: .client)
        var local = peer.local
        local.setup = .active
        if let lie { local.fingerprints = [lie] }
        return DownDescription.answer(to: offer, sessionID: 1, transport: local)
    }
}

/// A packet of synthetic VP8, a complete frame. A payload of 0 bytes is padding. Under the payload type of an audio
/// codec it is audio.
func vp8(
    _ number: Int, keyframe: Bool = false, payload length: Int = 7, as codec: Codec = .vp8
) -> PacketBuffer {
    var packet = PacketBuffer()
    let pictureID = number & 0x7fff
    let head: [UInt8] = [0x90, 0x80, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff), keyframe ? 0 : 1]
    let payload = (head + [UInt8](repeating: 0, count: max(0, length - head.count))).prefix(length)
    _ = packet.assignRTP(
        payloadType: codec.payloadType, sequenceNumber: SequenceNumber(UInt16(number & 0xffff)),
        timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: number * 3000)), ssrc: SSRC(1), payload: Array(payload))
    return packet
}

/// A participant with real media: it signals through a `RawClient`, and its sessions are peers on a loop of the test.
/// It never requests a keyframe by itself.
final class MediaClient {
    let raw: RawClient
    let participant: String
    let loop: EventLoop
    private var sessions: [LoopBound<MediaSession>] = []

    init(_ server: RoomServer, _ grant: AccessGrant, room: String = "kitchen", loop: EventLoop) throws {
        let (raw, joined) = try join(server, grant.accessToken, room: room)
        self.raw = raw
        participant = joined.participant
        self.loop = loop
    }

    deinit {
        // A test that throws does not reach `close`, and a peer traps if it is released open.
        let sessions = self.sessions
        loop.execute { for session in sessions { session.value.peer.close() } }
    }

    private func makeSession(_ role: ICERole) async throws -> LoopBound<MediaSession> {
        let loop = self.loop
        let session = try await onLoop(loop) {
            Result { LoopBound(try MediaSession(loop: loop, role: role), loop: loop) }
        }.get()
        sessions.append(session)
        return session
    }

    /// Accepts the server's offer of the down session and waits until media can flow.
    func watch() async throws -> LoopBound<MediaSession> {
        let session = try await answer()
        try #require(await eventually { await onLoop(loop) { session.value.isSecured } })
        return session
    }

    /// Accepts the server's offer of the down session; `lie` replaces the session's fingerprint.
    func answer(lie: Fingerprint? = nil, losesMedia: Bool = false) async throws -> LoopBound<MediaSession> {
        let message = try raw.message { if case .offer = $0.message { true } else { false } }
        guard case .offer(let description) = message.message else { throw RoomError(.offerRefused, "no offer") }
        let offer = try SessionDescription(parsing: description.sdp)
        let session = try await makeSession(.controlled)
        let answer = try await onLoop(loop) {
            session.value.losesMedia = losesMedia
            return Result { try session.value.answer(offer, lie: lie) }
        }.get()
        raw.sendMessage(
            .answer(Description(session: .down, sdp: answer.serialized(), revision: description.revision)))
        return session
    }

    /// Publishes streams of synthetic video; `lie` replaces the session's fingerprint.
    func publish(
        _ count: Int = 1, midExtension: UInt8? = nil, lie: Fingerprint? = nil
    ) async throws -> (session: LoopBound<MediaSession>, streams: [Int]) {
        let session = try await makeSession(.controlling)
        let publish = await onLoop(loop) {
            session.value.offer(Array(repeating: .vp8, count: count), midExtension: midExtension, lie: lie)
        }
        raw.sendMessage(.publish(publish), id: 1000)
        let answered = try raw.message { $0.id == 1000 }
        guard case .published(let published) = answered.message else {
            throw RoomError(.publishRefused, "\(answered)")
        }
        try await onLoop(loop) { Result { try session.value.connect(by: published) } }.get()
        return (session, published.streams.map(\.stream))
    }

    func subscribe(_ stream: Int) throws {
        #expect(try raw.refusal(of: .subscribe(ViewOfStream(stream: stream)), id: 2000 + stream) == nil)
    }

    func close() async {
        let sessions = self.sessions
        await onLoop(loop) { for session in sessions { session.value.peer.close() } }
    }
}

/// A server, and a loop for the sessions of its `MediaClient`s.
func withMedia(
    configured change: (inout RoomServer.Configuration) -> Void = { _ in },
    _ body: @Sendable (RoomServer, AccessGrant, EventLoop) async throws -> Void
) async throws {
    let loop = EventLoop(name: "clients")
    do {
        try await withServer(configured: change) { server, grant in try await body(server, grant, loop) }
    } catch {
        loop.shutdown()
        throw error
    }
    loop.shutdown()
}

/// Sends packets of a publisher's session until a subscriber's session has so many. Returns false if they do not come in time.
func packetsFlow(
    _ count: Int, from up: LoopBound<MediaSession>, to down: LoopBound<MediaSession>, on loop: EventLoop
) async -> Bool {
    await eventually {
        await onLoop(loop) {
            if up.value.isSecured { up.value.send(next: 1, keyframe: true) }
            return down.value.received.count >= count
        }
    }
}
