import Glibc
import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer
@testable import ServerCore

@Suite(.serialized) struct SessionEndTests {
    @Test func `unrepairable loss on the way up makes the server request a keyframe`() async throws {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) { Result { LoopBound(try Uplink(loop: loop), loop: loop) } }.get()
        #expect(await eventually { await onLoop(loop) { call.value.client.isSecured } })
        await onLoop(loop) {
            // A gap of more packets than are requested again.
            call.value.client.send(1..<2)
            call.value.client.send(1000..<1001)
        }
        #expect(await eventually { await onLoop(loop) { call.value.client.keyframeRequests == 1 } })
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }

    @Test func `a stream that SRTP refuses makes the server request a keyframe`() async throws {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) { Result { LoopBound(try Uplink(loop: loop), loop: loop) } }.get()
        #expect(await eventually { await onLoop(loop) { call.value.client.isSecured } })
        await onLoop(loop) { call.value.client.send(40_000..<40_001) }
        // During a cut the numbers advance so far that the server mistakes the rollover counter (RFC 3711 section
        // 3.3.1).
        await onLoop(loop) {
            call.value.client.peer.impairment = .cut
            call.value.client.send(60_000..<60_001)
            call.value.client.send(80_000..<80_001)
        }
        await onLoop(loop) { call.value.client.peer.impairment = nil }
        var number = 80_001
        let isAsked = await eventually {
            let next = number
            number += 1
            return await onLoop(loop) {
                call.value.client.send(next..<(next + 1))
                return call.value.client.keyframeRequests == 1
            }
        }
        #expect(isAsked)
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }

    @Test func `a publisher gets one keyframe request per second, however many subscribers send`() async throws {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) { Result { LoopBound(try Uplink(loop: loop), loop: loop) } }.get()
        #expect(await eventually { await onLoop(loop) { call.value.client.isSecured } })
        let start = EventLoop.now
        await onLoop(loop) { for _ in 0..<100 { call.value.stream.layers[0].requestKeyframe() } }
        #expect(await eventually { await onLoop(loop) { call.value.client.keyframeRequests == 2 } })
        #expect(EventLoop.now - start >= KeyframeGovernor.interval)
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }

    @Test func `a keyframe that arrives meanwhile answers the waiting request`() async throws {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) { Result { LoopBound(try Uplink(loop: loop), loop: loop) } }.get()
        #expect(await eventually { await onLoop(loop) { call.value.client.isSecured } })
        let requests: Int = await withCheckedContinuation { done in
            loop.execute {
                for _ in 0..<2 { call.value.stream.layers[0].requestKeyframe() }
                call.value.client.send(1..<2, keyframe: true)
                loop.schedule(after: KeyframeGovernor.interval + .milliseconds(100)) {
                    done.resume(returning: call.value.client.keyframeRequests)
                }
            }
        }
        #expect(requests == 1)
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }

    @Test func `a restarted stream gets a keyframe request immediately, even if another was sent before`() async throws
    {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) { Result { LoopBound(try Uplink(loop: loop), loop: loop) } }.get()
        #expect(await eventually { await onLoop(loop) { call.value.client.isSecured } })
        await onLoop(loop) {
            for epoch in 0...1 {
                call.value.forward(1, epoch: epoch)
                // The first is sent immediately, the second after a second.
                for _ in 0..<2 { call.value.stream.layers[0].requestKeyframe() }
            }
        }
        #expect(await eventually { await onLoop(loop) { call.value.client.keyframeRequests == 3 } })
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }

    @Test func `a second keyframe is requested for a client that does not report on the first`() async throws {
        try await withMedia { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, streams) = try await publisher.publish()
            #expect(await eventually { await onLoop(loop) { up.value.isSecured } })
            let source = await onLoop(loop) { LoopBound(FrameSource(up.value, loop: loop, first: 0), loop: loop) }
            let viewer = try MediaClient(server, grant, loop: loop)
            // Before its session is secured.
            viewer.raw.sendMessage(.subscribe(ViewOfStream(stream: streams[0])))
            // The first keyframe is lost, and so are all of the viewer's reports.
            _ = try await viewer.answer(losesMedia: true)
            #expect(await eventually { await onLoop(loop) { up.value.keyframeRequests >= 2 } })
            await onLoop(loop) { source.value.stop() }
            await publisher.close()
            await viewer.close()
        }
    }

    @Test func `a publisher gets an error for packets that are too long to forward`() async throws {
        try await withMedia { server, grant, loop in
            let client = try MediaClient(server, grant, loop: loop)
            let (session, _) = try await client.publish()
            #expect(await eventually { await onLoop(loop) { session.value.isSecured } })
            let tooLong = PeerSessionConfiguration.standardPacketLength + 1 - RTPHeader.minimumLength
            await onLoop(loop) { session.value.send(1..<2, keyframe: true, payload: tooLong) }
            let refusal = try client.raw.message { if case .error = $0.message { true } else { false } }
            guard case .error(let problem) = refusal.message else { return }
            #expect(problem.error.code == .packetTooLong)
            await client.close()
        }
    }

    @Test func `a participant whose session fails gets the reason, and leaves the room and its sockets`() async throws {
        // Sessions have sockets of their own.
        try await withMedia(configured: { $0.ice = .full }) { server, grant, loop in
            let (watcher, _) = try join(server, grant.accessToken)
            let client = try MediaClient(server, grant, loop: loop)
            let port = try client.mediaPort()
            #expect(!isFree(port))
            let wrong = Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))
            _ = try await client.publish(lie: wrong)
            let closed = try client.raw.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.code == RoomError.Code.mediaConnectionFailed.name)
            #expect(closing.message.hasPrefix("The client's media connection to the server failed: "))
            let left = try watcher.message { if case .participantLeft = $0.message { true } else { false } }
            #expect(left.message == .participantLeft(ParticipantReference(participant: client.participant)))
            #expect(client.raw.isClosedByServer())
            #expect(await eventually { isFree(port) })
            await client.close()
        }
    }

    @Test func `clients that vanish while their messages are handled leave no participant behind`() async throws {
        try await withServer { server, grant in
            for round in 0..<200 {
                let (client, _) = try join(server, grant.accessToken)
                // Some answers to pings arrive, the others meet a closed socket, and the second join comes after that.
                let ping = client.frame(Array(Envelope<ClientMessage>(id: 2, .ping).json().utf8))
                let again = Envelope(id: 3, ClientMessage.join(Join(token: grant.accessToken, room: "kitchen")))
                client.send(Array(repeatElement(ping, count: 30).joined()) + client.frame(Array(again.json().utf8)))
                for _ in 0..<round % 30 { _ = try client.message { $0.message == .pong } }
            }
            let isEmpty = await eventually {
                (try? join(server, grant.accessToken))?.1.participants.isEmpty ?? false
            }
            #expect(isEmpty)
        }
    }

    @Test func `a participant whose receiving session fails leaves with the reason`() async throws {
        try await withMedia { server, grant, loop in
            let client = try MediaClient(server, grant, loop: loop)
            let wrong = Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))
            _ = try await client.answer(lie: wrong)
            let closed = try client.raw.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.code == RoomError.Code.mediaConnectionFailed.name)
            #expect(closing.message.hasPrefix("The client's media connection from the server failed: "))
            #expect(client.raw.isClosedByServer())
            await client.close()
        }
    }

    @Test(arguments: [true, false])
    func `a client leaves the room when it closes one of its sessions`(closesUpSession: Bool) async throws {
        let log = LogLines()
        try await withMedia(configured: { $0.log = log.logger }) { server, grant, loop in
            let (watcher, _) = try join(server, grant.accessToken)
            let client = try MediaClient(server, grant, loop: loop)
            if closesUpSession {
                let (session, _) = try await client.publish()
                #expect(await eventually { await onLoop(loop) { session.value.isSecured } })
            } else {
                _ = try await client.watch()
            }
            await client.close()
            let closed = try client.raw.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.code == RoomError.Code.mediaConnectionFailed.name)
            let way = closesUpSession ? "its media connection to" : "the media connection from"
            #expect(closing.message == "The client closed \(way) the server.")
            let left = try watcher.message { if case .participantLeft = $0.message { true } else { false } }
            #expect(left.message == .participantLeft(ParticipantReference(participant: client.participant)))
            #expect(await eventually { log.all.contains("info left media lost") })
        }
    }
}

/// A server's up session, the client at its other end, and a subscriber whose own session is never set up: only
/// loss gives the server a reason to request a keyframe. On the loop only.
private final class Uplink {
    let client: MediaSession
    private let session: UpSession
    private let subscriber: Peer
    private let consumer: Consumer
    let stream: PublishedStream

    init(loop: EventLoop) throws {
        let settings = SessionSettings(loop: loop, certificate: try Certificate(), scope: .loopback, impairment: nil)
        client = try MediaSession(loop: loop, role: .controlling)
        session = try UpSession(participant: "p-1", settings: settings, place: .here) { _ in }
        let publish = client.offer([.vp8])
        let (answer, streams) = try session.publish(
            publish, offer: try SessionDescription(parsing: publish.sdp), numbered: { 1 })
        try client.connect(by: answer)
        subscriber = try settings.makePeer(.controlling, .here)
        consumer = Consumer(
            Receiver(mid: "0", media: .video, ssrc: SSRC(1), retransmissionSSRC: nil), peer: subscriber,
            firstSequenceNumber: SequenceNumber(100), history: 0, replays: ReplayPace(loop: loop))
        stream = streams[0]
        consumer.assign(stream)
    }

    func forward(_ number: Int, epoch: Int) {
        let packet = vp8(number)
        guard let header = RTPHeader(parsing: packet) else { return }
        stream.layers[0].forward(packet, header: header, at: StreamPosition(epoch: epoch, number: number))
    }

    func close() {
        consumer.release()
        for peer in [subscriber, client.peer] { peer.close() }
        session.close()
    }
}

extension MediaClient {
    /// The server's UDP port of this client's down session.
    func mediaPort() throws -> UInt16 {
        let message = try raw.message { if case .offer = $0.message { true } else { false } }
        guard case .offer(let description) = message.message else { return 0 }
        let candidate = try #require(try SessionDescription(parsing: description.sdp).transport?.candidates.first)
        return try #require(UInt16(candidate.split(separator: " ")[5]))
    }
}

/// Whether the UDP port of loopback is free.
private func isFree(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    } == 0
}
