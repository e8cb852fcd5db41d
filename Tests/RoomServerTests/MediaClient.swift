import PeerIO
import PeerSession
import RTP
import RoomProtocol
import Testing

@testable import RoomServer

/// Runs the closure on the loop and returns its result.
func onLoop<Result: Sendable>(_ loop: EventLoop, _ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { done in
        loop.execute { done.resume(returning: body()) }
    }
}

/// Waits until the condition holds; false when 10 s pass first.
func eventually(_ condition: () async -> Bool) async -> Bool {
    let deadline = EventLoop.now + .seconds(10)
    while true {
        if await condition() { return true }
        guard EventLoop.now < deadline else { return false }
        try? await Task.sleep(for: .milliseconds(2))
    }
}

/// One session of a `MediaClient`. On its loop only.
final class MediaSession {
    let peer: Peer
    var senders: [SenderID] = []
    private(set) var isSecured = false
    private(set) var keyframeRequests = 0
    private(set) var lossesBeyondRepair = 0
    private(set) var senderReports = 0
    private var sent = 0
    private(set) var received: [RTPHeader] = []

    init(loop: EventLoop, role: ICERole) throws {
        var configuration = PeerConfiguration(iceRole: role, certificate: try Certificate(), cname: "test")
        // One byte more than the server sends on.
        configuration.maximumPacketLength = PeerSessionConfiguration.standardPacketLength + 1
        peer = try Peer(loop: loop, configuration: configuration)
        peer.onEvent = { [unowned self] event in
            switch event {
            case .secured: isSecured = true
            case .keyframeRequested: keyframeRequests += 1
            case .lossBeyondRepair: lossesBeyondRepair += 1
            case .senderReport: senderReports += 1
            case .localCandidate, .gatheringDone, .connected, .disconnected, .mediaRefused, .unauthenticated, .bye,
                .roundTrip, .closed, .failed:
                break
            }
        }
        peer.onMedia = { [unowned self] _, header, _, _ in received.append(header) }
        try peer.start()
    }

    /// Sends the next packets of made-up VP8.
    func send(next count: Int, keyframe: Bool = false) {
        send(sent..<(sent + count), keyframe: keyframe)
        sent += count
    }

    /// Sends packets of made-up VP8, each a frame of its own.
    func send(_ numbers: Range<Int>, keyframe: Bool = false, sender: Int = 0, payload length: Int = 7) {
        for number in numbers {
            let packet = vp8(number, keyframe: keyframe, payload: length)
            guard let header = RTPHeader(parsing: packet) else { return }
            peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: senders[sender])
        }
    }
}

/// A packet of made-up VP8, a frame of its own. A payload of 0 bytes is padding.
func vp8(_ number: Int, keyframe: Bool = false, payload length: Int = 7) -> PacketBuffer {
    var packet = PacketBuffer()
    let pictureID = number & 0x7fff
    let head: [UInt8] = [0x90, 0x80, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff), keyframe ? 0 : 1]
    let payload = (head + [UInt8](repeating: 0, count: max(0, length - head.count))).prefix(length)
    _ = packet.assignRTP(
        payloadType: Codec.vp8.payloadType, sequenceNumber: SequenceNumber(UInt16(number & 0xffff)),
        timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: number * 3000)), ssrc: SSRC(1), payload: Array(payload))
    return packet
}

/// A participant with real media: it signals by a `RawClient`, and its sessions are peers on a loop of the test's.
/// It never asks for a keyframe by itself.
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
        // A test that throws does not get to `close`, and a peer traps when it is released open.
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

    /// Takes the server's offer of the down session and waits until media can flow.
    func watch() async throws -> LoopBound<MediaSession> {
        let session = try await answer()
        #expect(await eventually { await onLoop(loop) { session.value.isSecured } })
        return session
    }

    /// Takes the server's offer of the down session; `lie` goes in place of the session's fingerprint.
    func answer(lie: Fingerprint? = nil) async throws -> LoopBound<MediaSession> {
        let message = try raw.message { if case .offer = $0.message { true } else { false } }
        guard case .offer(let description) = message.message else { throw RoomError(.offerRefused, "no offer") }
        let offer = try SessionDescription(parsing: description.sdp)
        let receivers = try DownDescription.receivers(in: offer)
        let transport = try #require(offer.transport)
        let session = try await makeSession(.controlled)
        let local = try await onLoop(loop) {
            Result {
                for receiver in receivers {
                    _ = session.value.peer.addReceiver(
                        ReceiverConfiguration(
                            kind: receiver.media == .audio ? .audio : .video, ssrc: receiver.ssrc,
                            retransmissionSSRC: receiver.retransmissionSSRC, mid: receiver.mid,
                            clockRate: receiver.media == .audio ? 48000 : 90000,
                            payloadTypes: Set(Codec.of(receiver.media).map(\.payloadType)), nack: false))
                }
                try session.value.peer.setRemote(transport, dtlsRole: .client)
                return session.value.peer.local
            }
        }.get()
        var answering = local
        answering.setup = .active
        if let lie { answering.fingerprints = [lie] }
        let answer = DownDescription.answer(to: offer, sessionID: 1, transport: answering)
        raw.sendMessage(
            .answer(Description(session: .down, sdp: answer.serialized(), revision: description.revision)))
        return session
    }

    /// Publishes streams of made-up video; `lie` goes in place of the session's fingerprint.
    func publish(
        _ count: Int = 1, lie: Fingerprint? = nil
    ) async throws -> (session: LoopBound<MediaSession>, streams: [Int]) {
        let session = try await makeSession(.controlling)
        let senders = (0..<count).map {
            Sender(mid: String($0), codec: .vp8, ssrc: SSRC(UInt32(5000 + 2 * $0)), retransmissionSSRC: nil)
        }
        var local = await onLoop(loop) {
            for sender in senders {
                session.value.senders.append(
                    session.value.peer.addSender(
                        SenderConfiguration(kind: .video, ssrc: sender.ssrc, clockRate: 90000)))
            }
            return session.value.peer.local
        }
        if let lie { local.fingerprints = [lie] }
        let offer = UpDescription.offer(sessionID: 1, version: 1, senders: senders, transport: local, cname: "test")
        raw.sendMessage(
            .publish(Publish(sdp: offer.serialized(), streams: senders.map { .init(mid: $0.mid) })), id: 1000)
        let answered = try raw.message { $0.id == 1000 }
        guard case .published(let published) = answered.message else {
            throw RoomError(.publishRefused, "\(answered)")
        }
        let transport = try #require(try SessionDescription(parsing: published.sdp).transport)
        try await onLoop(loop) {
            let role: DTLSRole = transport.setup == .active ? .server : .client
            return Result { try session.value.peer.setRemote(transport, dtlsRole: role) }
        }.get()
        return (session, published.streams.map(\.stream))
    }

    func subscribe(_ stream: Int) throws {
        #expect(try raw.refusal(of: .subscribe(StreamReference(stream: stream)), id: 2000 + stream) == nil)
    }

    func close() async {
        let sessions = self.sessions
        await onLoop(loop) { for session in sessions { session.value.peer.close() } }
    }
}

/// A server, and a loop for the sessions of its `MediaClient`s.
func withMedia(_ body: @Sendable (RoomServer, AccessGrant, EventLoop) async throws -> Void) async throws {
    let loop = EventLoop(name: "clients")
    do {
        try await withServer { server, grant in try await body(server, grant, loop) }
    } catch {
        loop.shutdown()
        throw error
    }
    loop.shutdown()
}
