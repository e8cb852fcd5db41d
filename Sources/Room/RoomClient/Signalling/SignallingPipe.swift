internal import ClientCore
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import NIOWebSocket
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// The WebSocket to a room server as a pipe of texts. `SignallingSession` interprets them.
struct SignallingPipe: Sendable {
    fileprivate let channel: any Channel
    fileprivate let end: PipeEnd
    /// The literal address of the server.
    let remoteAddress: String?
    /// The literal address of this machine.
    let localAddress: String?

    /// Connects and upgrades, 8 s in all. Calls `onEvent` on a NIO thread, in order, possibly before `open` returns. If
    /// it returns false, the receiver cannot accept the message and the connection closes.
    static func open(
        to address: ServerAddress, trusting trust: ServerTrust = .system,
        onEvent: @escaping @Sendable (SignallingInput) -> Bool
    ) async throws(RoomError) -> SignallingPipe {
        let tls = address.isEncrypted ? try TLSClient(to: address, trusting: trust) : nil
        let end = PipeEnd()
        let tell: @Sendable (SignallingInput) -> Bool = { input in
            if case .closed = input { end.hasCome.store(true, ordering: .relaxed) }
            return onEvent(input)
        }
        do {
            let group = MultiThreadedEventLoopGroup.singleton
            let deadline = NIODeadline.now() + SignallingDeadlines.exchange.amount
            let upgraded = group.any().makePromise(of: Void.self)
            let channel: any Channel
            do {
                channel = try await ClientBootstrap(group: group)
                    .connectTimeout(SignallingDeadlines.connect.amount)
                    .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try addHandlers(to: channel, address: address, upgraded: upgraded, onEvent: tell)
                            try tls?.addHandler(to: channel)
                        }
                    }
                    .connect(host: address.host, port: address.port).get()
            } catch {
                upgraded.fail(error)
                throw error
            }
            let timer = channel.eventLoop.scheduleTask(deadline: deadline) {
                upgraded.fail(ChannelError.connectTimeout(SignallingDeadlines.exchange.amount))
            }
            defer { timer.cancel() }
            do {
                try await upgraded.futureResult.get()
            } catch {
                channel.close(promise: nil)
                throw error
            }
            return SignallingPipe(
                channel: channel, end: end, remoteAddress: channel.remoteAddress?.ipAddress,
                localAddress: channel.localAddress?.ipAddress)
        } catch {
            throw await unreachable(address, trust, error)
        }
    }

    private static func addHandlers(
        to channel: any Channel, address: ServerAddress, upgraded: EventLoopPromise<Void>,
        onEvent: @escaping @Sendable (SignallingInput) -> Bool
    ) throws {
        let upgrader = NIOWebSocketClientUpgrader(maxFrameSize: Signalling.maximumMessageLength) { channel, _ in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 64,
                        maxAccumulatedFrameSize: Signalling.maximumMessageLength))
                try channel.pipeline.syncOperations.addHandler(
                    SignallingHandler(server: address.description, onEvent: onEvent))
                upgraded.succeed()
            }
        }
        let handshake = HandshakeHandler(address: address, upgraded: upgraded)
        // `handshake` belongs to the channel's event loop, on which this closure and the completion handler run.
        let bound = NIOLoopBound(handshake, eventLoop: channel.eventLoop)
        try channel.pipeline.syncOperations.addHTTPClientHandlers(
            withClientUpgrade: (
                upgraders: [upgrader],
                completionHandler: { context in context.pipeline.syncOperations.removeHandler(bound.value, promise: nil)
                }
            ))
        try channel.pipeline.syncOperations.addHandler(handshake)
    }

    /// Queues a text. `SignallingSession` bounds the queue: by its limit on pending requests, and by its timeout for a
    /// server that does not read.
    func send(_ text: String) {
        let buffer = channel.allocator.buffer(string: text)
        channel.writeAndFlush(
            WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: buffer), promise: nil)
    }

    /// Sends the WebSocket's close frame and closes. If the network was cut, the frame cannot leave; then the connection
    /// closes without it after `SignallingDeadlines.leave`.
    func close() {
        let channel = channel
        var code = channel.allocator.buffer(capacity: 2)
        code.write(webSocketErrorCode: .normalClosure)
        channel.writeAndFlush(WebSocketFrame(fin: true, opcode: .connectionClose, maskKey: .random(), data: code))
            .whenComplete { _ in channel.close(promise: nil) }
        channel.eventLoop.scheduleTask(in: SignallingDeadlines.leave.amount) { channel.close(promise: nil) }
    }
}

/// Whether a pipe has closed.
private final class PipeEnd: Sendable {
    let hasCome = Atomic<Bool>(false)
}

extension SignallingPipe {
    /// Whether `.closed` is still to come. Callable on any thread.
    var isOpen: Bool { !end.hasCome.load(ordering: .relaxed) }

    /// Closes without the close frame, which would tell the server that this client has left.
    func abandon() { channel.close(promise: nil) }
}

/// Sends the upgrade request and turns a refusal into an error.
private final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let address: ServerAddress
    private let upgraded: EventLoopPromise<Void>
    /// The status of a response that is not an upgrade, and its body.
    private var status: UInt?
    private var body = ""
    private static let longestBody = 4096

    init(address: ServerAddress, upgraded: EventLoopPromise<Void>) {
        self.address = address
        self.upgraded = upgraded
    }

    func channelActive(context: ChannelHandlerContext) {
        let fields = HTTPHeaders([("Host", address.authority), ("Content-Length", "0")])
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: address.path + Signalling.webSocketPath, headers: fields)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    /// Receives a response that is not an upgrade.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): status = head.status.code
        case .body(let part):
            body += String(buffer: part)
            if body.utf8.count > Self.longestBody { refuse(context) }
        case .end: refuse(context)
        }
    }

    /// A room server states its reason, such as that it is full.
    private func refuse(_ context: ChannelHandlerContext) {
        guard let status else { return }
        let stated = (try? JSONDecoder().decode(Problem.self, from: Data(body.utf8)))?.error
        upgraded.fail(
            stated.flatMap { [.serverFull, .tooManyRequests, .serverUnreachable].contains($0.code) ? $0 : nil }
                ?? RoomError(
                    .serverUnreachable,
                    "The server \(address) refused the connection with HTTP status \(status). Check that it is a room "
                        + "server\(address.isEncrypted ? "" : ", and whether it needs https://")."))
        context.close(promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        refuse(context)
        upgraded.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Its body may have been cut off.
        refuse(context)
        upgraded.fail(ConnectionClosedEarly())
    }
}

/// Reads texts from WebSocket frames, and replies to pings.
private final class SignallingHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let server: String
    private let onEvent: @Sendable (SignallingInput) -> Bool
    private var isClosed = false

    init(server: String, onEvent: @escaping @Sendable (SignallingInput) -> Bool) {
        self.server = server
        self.onEvent = onEvent
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text: hand(.text(String(buffer: frame.unmaskedData)), context)
        case .ping:
            let pong = WebSocketFrame(fin: true, opcode: .pong, maskKey: .random(), data: frame.unmaskedData)
            context.writeAndFlush(wrapOutboundOut(pong), promise: nil)
            hand(.heard, context)
        case .connectionClose: context.close(promise: nil)
        default: hand(.heard, context)
        }
    }

    /// A message must not be lost, so the connection ends if it cannot be passed on.
    private func hand(_ event: SignallingInput, _ context: ChannelHandlerContext) {
        if !onEvent(event) { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // TCP ended without the farewell of TLS: the same as without TLS, which has none.
        if case NIOSSLError.uncleanShutdown = error { return }
        finish(
            RoomError(
                .connectionLost,
                "The connection to the server \(server) failed: \(explain(error)). Connect again when the server is reachable."
            ))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { finish(nil) }

    private func finish(_ error: RoomError?) {
        guard !isClosed else { return }
        isClosed = true
        _ = onEvent(.closed(error))
    }
}
