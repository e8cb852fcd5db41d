import NIOCore
import NIOPosix
import Synchronization

/// A TCP relay in front of a server. It can stop forwarding while its connections stay open, like a cut
/// network or a stopped process, or drop them, like a killed process.
final class Relay: Sendable {
    private struct State {
        var isFrozen = false
        var channels: [any Channel] = []
        var held: [(channel: any Channel, bytes: ByteBuffer)] = []
    }

    private let state = Mutex(State())
    private let listener = Mutex<(any Channel)?>(nil)
    let port: Int

    private init(port: Int) { self.port = port }

    /// Listens on a free port of loopback. Without a target it accepts connections and never responds.
    static func start(to target: Int?) async throws -> Relay {
        let group = MultiThreadedEventLoopGroup.singleton
        let holder = Mutex<Relay?>(nil)
        let shared = Shared(holder)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { client in
                guard let relay = shared.relay, let target else { return client.eventLoop.makeSucceededVoidFuture() }
                return relay.connect(client, to: target)
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let relay = Relay(port: channel.localAddress?.port ?? 0)
        relay.listener.withLock { $0 = channel }
        shared.relay = relay
        return relay
    }

    var url: String { "ws://127.0.0.1:\(port)" }
    /// For a server with TLS, of which the relay sees the encrypted bytes.
    var tlsURL: String { "https://127.0.0.1:\(port)" }

    /// From now on, bytes wait in both directions.
    func freeze() { state.withLock { $0.isFrozen = true } }

    /// Delivers the waiting datagrams.
    func thaw() {
        let held = state.withLock { state in
            state.isFrozen = false
            defer { state.held = [] }
            return state.held
        }
        for item in held { item.channel.writeAndFlush(item.bytes, promise: nil) }
    }

    /// Closes every connection and accepts no more.
    func kill() async {
        try? await listener.withLock { $0 }?.close()
        let channels = state.withLock { $0.channels }
        for channel in channels { try? await channel.close() }
    }

    /// Closes every connection, as a proxy that restarts does. Others can come.
    func drop() async {
        let channels = state.withLock { state in
            defer { (state.channels, state.held) = ([], []) }
            return state.channels
        }
        for channel in channels { try? await channel.close() }
    }

    private func connect(_ client: any Channel, to target: Int) -> EventLoopFuture<Void> {
        ClientBootstrap(group: client.eventLoop)
            .connect(host: "127.0.0.1", port: target)
            .flatMap { server in
                self.state.withLock { $0.channels += [client, server] }
                return client.eventLoop.makeCompletedFuture {
                    try client.pipeline.syncOperations.addHandler(Pump(to: server, relay: self))
                    try server.pipeline.syncOperations.addHandler(Pump(to: client, relay: self))
                }
            }
    }

    fileprivate func pass(_ bytes: ByteBuffer, to channel: any Channel) {
        let isHeld = state.withLock { state in
            if state.isFrozen { state.held.append((channel, bytes)) }
            return state.isFrozen
        }
        if !isHeld { channel.writeAndFlush(bytes, promise: nil) }
    }

    private final class Shared: Sendable {
        private let holder: Mutex<Relay?>
        init(_ holder: consuming Mutex<Relay?>) { self.holder = holder }
        var relay: Relay? {
            get { holder.withLock { $0 } }
            set { holder.withLock { $0 = newValue } }
        }
    }
}

private final class Pump: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let target: any Channel
    private let relay: Relay

    init(to target: any Channel, relay: Relay) {
        self.target = target
        self.relay = relay
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { relay.pass(unwrapInboundIn(data), to: target) }

    func channelInactive(context: ChannelHandlerContext) { target.close(promise: nil) }
}
