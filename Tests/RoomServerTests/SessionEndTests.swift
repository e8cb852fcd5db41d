import Glibc
import PeerIO
import PeerSession
import RTP
import RoomProtocol
import Testing

@testable import RoomServer

@Suite(.serialized) struct SessionEndTests {
    @Test func `loss on the way up that repair cannot mend makes the server ask for a keyframe`() async throws {
        let loop = EventLoop(name: "both ends")
        let call = try await onLoop(loop) { Result { LoopBound(try Uplink(loop: loop), loop: loop) } }.get()
        #expect(await eventually { await onLoop(loop) { call.value.client.isSecured } })
        await onLoop(loop) {
            // A gap of more packets than are asked for again.
            call.value.client.send(1..<2)
            call.value.client.send(1000..<1001)
        }
        #expect(await eventually { await onLoop(loop) { call.value.client.keyframeRequests == 1 } })
        await onLoop(loop) { call.value.close() }
        loop.shutdown()
    }

    @Test func `a participant whose session fails is told why, and leaves the room and its sockets`() async throws {
        try await withMedia { server, grant, loop in
            let (watcher, _) = try join(server, grant.accessToken)
            let client = try MediaClient(server, grant, loop: loop)
            let port = try client.mediaPort()
            #expect(!isFree(port))
            let wrong = Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))
            _ = try await client.publish(lie: wrong)
            let closed = try client.raw.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.code == RoomError.Code.mediaConnectionFailed.name)
            #expect(closing.message.hasPrefix("The session that publishes failed: "))
            let left = try watcher.message { if case .participantLeft = $0.message { true } else { false } }
            #expect(left.message == .participantLeft(ParticipantReference(participant: client.participant)))
            #expect(client.raw.isClosedByServer())
            #expect(await eventually { isFree(port) })
            await client.close()
        }
    }

    @Test func `a client that closes its down session leaves the room`() async throws {
        try await withMedia { server, grant, loop in
            let (watcher, _) = try join(server, grant.accessToken)
            let client = try MediaClient(server, grant, loop: loop)
            _ = try await client.watch()
            await client.close()
            let left = try watcher.message { if case .participantLeft = $0.message { true } else { false } }
            #expect(left.message == .participantLeft(ParticipantReference(participant: client.participant)))
        }
    }
}

/// A server's up session, the client at its other end, and a subscriber whose own session never comes about: nothing
/// but loss gives the server a reason to ask for a keyframe. On the loop only.
private final class Uplink {
    let client: MediaSession
    private let session: UpSession
    private let subscriber: Peer
    private let consumer: Consumer

    init(loop: EventLoop) throws {
        let settings = SessionSettings(loop: loop, certificate: try Certificate(), scope: .loopback, impairment: nil)
        client = try MediaSession(loop: loop, role: .controlling)
        session = try UpSession(participant: "p-1", settings: settings) { _ in }
        let sender = Sender(mid: "0", codec: .vp8, ssrc: SSRC(5000), retransmissionSSRC: nil)
        client.senders = [
            client.peer.addSender(SenderConfiguration(kind: .video, ssrc: sender.ssrc, clockRate: 90000))
        ]
        let offer = UpDescription.offer(
            sessionID: 1, version: 1, senders: [sender], transport: client.peer.local, cname: "test")
        let (answer, streams) = try session.publish(
            Publish(sdp: offer.serialized(), streams: [.init(mid: "0")]), offer: offer, numbered: { 1 })
        let transport = try #require(try SessionDescription(parsing: answer.sdp).transport)
        try client.peer.setRemote(transport, dtlsRole: .client)
        subscriber = try settings.makePeer(.controlling)
        consumer = Consumer(
            Receiver(mid: "0", media: .video, ssrc: SSRC(1), retransmissionSSRC: nil), peer: subscriber,
            cacheCapacity: 0)
        consumer.assign(streams[0])
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

/// Whether nobody listens on the UDP port of loopback.
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
