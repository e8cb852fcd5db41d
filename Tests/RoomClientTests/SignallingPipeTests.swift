import ClientCore
import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import RoomClient

@Suite struct SignallingPipeTests {
    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
        func set() { value.store(true, ordering: .relaxed) }
    }

    /// Accepts WebSockets and reads nothing from them, as if the network were cut.
    private static func startDeafServer(
        _ group: MultiThreadedEventLoopGroup, accepted: @escaping @Sendable (any Channel) -> Void = { _ in }
    ) async throws -> any Channel {
        try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                accepted(channel)
                return channel.eventLoop.makeCompletedFuture {
                    let upgrader = NIOWebSocketServerUpgrader(
                        shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(HTTPHeaders()) },
                        upgradePipelineHandler: { channel, _ in channel.setOption(.autoRead, value: false) })
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                        withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in }))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    @Test func `a connection that the server resets ends with the plain reason`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let accepted = Mutex<(any Channel)?>(nil)
        let server = try await Self.startDeafServer(group) { channel in accepted.withLock { $0 = channel } }
        let port = try #require(server.localAddress?.port)
        let failure = Mutex<RoomError?>(nil)
        let pipe = try await SignallingPipe.open(to: try ServerAddress("ws://127.0.0.1:\(port)")) { event in
            if case .closed(let error) = event { failure.withLock { $0 = error } }
            return true
        }
        #expect(pipe.isOpen)
        let channel = try #require(accepted.withLock { $0 })
        // Closing then sends RST.
        let socket = try #require(channel as? any SocketOptionProvider)
        try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        try await channel.close()
        try await requireEventually(within: 30, "the connection ends") { failure.withLock { $0 } != nil }
        let message = failure.withLock { $0?.message } ?? ""
        #expect(message.contains(" failed: connection reset by peer. "), "\(message)")
        #expect(!pipe.isOpen)
        pipe.close()
        try await server.close()
        try await group.shutdownGracefully()
    }

    @Test func `a connection closes soon, even if the network accepts nothing more`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = try await Self.startDeafServer(group)
        let port = try #require(server.localAddress?.port)
        let closed = Flag()
        let pipe = try await SignallingPipe.open(to: try ServerAddress("ws://127.0.0.1:\(port)")) { event in
            if case .closed = event { closed.set() }
            return true
        }
        #expect(pipe.remoteAddress == "127.0.0.1")
        // More than both sockets' buffers hold.
        let text = String(repeating: "x", count: 200_000)
        for _ in 0..<40 { pipe.send(text) }
        pipe.close()
        try await requireEventually(within: 30, "the connection closes") { closed.isSet }
        try await server.close()
        try await group.shutdownGracefully()
    }
}
