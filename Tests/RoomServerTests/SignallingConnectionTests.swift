import Dispatch
import NIOCore
import NIOPosix
import NIOWebSocket
import PeerIO
import PeerLoop
import RoomFixtures
import RoomProtocol
import Synchronization
import Testing

@testable import RoomServer
@testable import ServerCore

@Suite(.serialized) struct SignallingConnectionTests {
    /// Keeps the frames of its channel, and writes none of them.
    private final class Recorder: ChannelOutboundHandler, Sendable {
        typealias OutboundIn = WebSocketFrame

        private let frames = Mutex<[ByteBuffer]>([])

        var all: [ByteBuffer] { frames.withLock { $0 } }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            let frame = unwrapOutboundIn(data)
            frames.withLock { $0.append(frame.data) }
            promise?.succeed()
        }
    }

    @Test(arguments: [ClientPlace.here, .unknown, .elsewhere])
    func `the server tries loopback candidates only of a client on this machine`(place: ClientPlace) async throws {
        let loop = PeerIO.EventLoop(name: "server")
        let certificate = try Certificate()
        let ignored = try await onLoop(loop) {
            Result {
                let settings = SessionSettings(loop: loop, certificate: certificate, scope: .any, impairment: nil)
                let peer = try settings.makePeer(.controlled, place)
                peer.addRemoteCandidate("candidate:1 1 udp 1 127.0.0.1 20000 typ host")
                peer.close()
                return peer.statistics.candidatesIgnored
            }
        }.get()
        #expect(ignored == (place == .here ? 0 : 1))
        await onLoop(loop) {}
        loop.shutdown()
    }

    @Test func `a message for many clients is encoded once, and they share its bytes`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let recorders = (0..<3).map { _ in Recorder() }
        var channels: [any Channel] = []
        for recorder in recorders {
            let channel = try await DatagramBootstrap(group: group)
                .channelInitializer { $0.pipeline.addHandler(recorder) }
                .bind(host: "127.0.0.1", port: 0).get()
            channels.append(channel)
        }
        let connections = channels.enumerated().map { SignallingConnection(id: UInt64($0), channel: $1) }
        SignallingConnection.send(.participantLeft(ParticipantReference(participant: "p-1")), to: connections)
        // The group has one thread, which writes before it runs this.
        try await group.next().submit {}.get()
        let places = recorders.flatMap(\.all).map { frame in
            frame.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
        }
        #expect(places.count == 3)
        #expect(Set(places).count == 1)
        for channel in channels { try await channel.close() }
        try await group.shutdownGracefully()
    }

    @Test func `a request counts as unhandled until its response is written`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let channel = try await DatagramBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
        let connection = SignallingConnection(id: 1, channel: channel)
        let writer = Gate()
        writer.close()
        group.next().execute { _ = writer.pass() }
        for _ in 0..<SignallingConnection.maximumUnhandled {
            #expect(connection.beginHandling())
            connection.endHandling(hasResponse: true)
        }
        #expect(!connection.beginHandling())
        connection.endHandling(hasResponse: false)
        writer.open()
        try await group.next().submit {}.get()
        #expect(connection.beginHandling())
        try await channel.close()
        try await group.shutdownGracefully()
    }

    /// A client that has joined, while another one's join occupies the rooms' loop.
    private func withBusyRooms(_ body: @escaping @Sendable (RawClient) throws -> Void) async throws {
        let rooms = Gate()
        try await withServer(configured: { $0.impairment = { rooms.pass() } }) { server, grant in
            defer { rooms.open() }
            let (client, _) = try join(server, grant.accessToken)
            rooms.close()
            let newcomer = try RawClient(port: server.port)
            #expect(try newcomer.openWebSocket(port: server.port) == 101)
            newcomer.sendMessage(.join(Join(token: grant.accessToken, room: "kitchen")), id: 1)
            rooms.waitUntilReached()
            try body(client)
            rooms.open()
            _ = try newcomer.message { $0.id == 1 }
        }
    }

    @Test func `a ping is answered while the rooms are busy`() async throws {
        try await withBusyRooms { client in
            client.sendMessage(.ping, id: 2)
            let answer = try client.message { $0.id == 2 }
            #expect(answer.message == .pong)
        }
    }

    @Test func `a client that sends more requests than may wait for the rooms is disconnected`() async throws {
        try await withBusyRooms { client in
            for _ in 0...SignallingConnection.maximumUnhandled {
                client.sendMessage(.candidate(Candidate(session: .down, candidate: "")))
            }
            #expect(client.isClosedByServer())
        }
    }

    /// Blocks a thread.
    private final class Gate: Sendable {
        private let isClosed = Atomic(false)
        private let reached = DispatchSemaphore(value: 0)
        private let opened = DispatchSemaphore(value: 0)

        func close() { isClosed.store(true, ordering: .relaxed) }

        func open() {
            isClosed.store(false, ordering: .relaxed)
            opened.signal()
        }

        /// Called on the thread; makes no impairment.
        func pass() -> Impairment? {
            if isClosed.load(ordering: .relaxed) {
                reached.signal()
                opened.wait()
            }
            return nil
        }

        func waitUntilReached() { reached.wait() }
    }
}
