internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import NIOWebSocket
internal import RoomProtocol
internal import ServerCore
internal import Synchronization

/// The TCP side of the server: HTTP and WebSockets.
final class HTTPListener: Sendable {
    /// How many bytes may wait for a client that does not read.
    static let maximumUnsent = 1024 * 1024
    /// Bytes that one read of a connection takes.
    private static let receiveBuffer = 2048

    let port: Int
    private let channel: any Channel
    private let group: MultiThreadedEventLoopGroup

    private init(channel: any Channel, group: MultiThreadedEventLoopGroup, port: Int) {
        self.channel = channel
        self.group = group
        self.port = port
    }

    /// Listens on the first free port of `ports`.
    ///
    /// - Parameter tls: the certificate for all connections. Nil without TLS.
    static func start(
        host: String, ports: ClosedRange<Int>, routes: Routes, messagePace: Pace, tls: TLSIdentity? = nil,
        delegate: any SignallingDelegate
    ) async throws(RoomError) -> HTTPListener {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let connections = Connections(
            messagePace: messagePace, tls: tls, limits: routes.limits, refusals: routes.refusals)
        var failure: (any Error)?
        for port in ports {
            do {
                let channel = try await bootstrap(group, routes, delegate, connections).bind(host: host, port: port)
                    .get()
                return HTTPListener(channel: channel, group: group, port: channel.localAddress?.port ?? port)
            } catch {
                failure = error
                guard (error as? IOError)?.errnoCode == EADDRINUSE else { break }
            }
        }
        try? await group.shutdownGracefully()
        throw error(for: failure, host: host, port: ports.lowerBound)
    }

    static func error(for failure: (any Error)?, host: String, port: Int) -> RoomError {
        let host = host.contains(":") ? "[\(host)]" : host
        return switch (failure as? IOError)?.errnoCode {
        case EADDRINUSE:
            RoomError(
                .portInUse,
                "Another program uses port \(port) on \(host). End it, or choose another port with --listen "
                    + "\(host):PORT.")
        case EACCES: privileged(port: port)
        default:
            RoomError(
                .listenFailed,
                "Cannot listen on \(host):\(port): \(reason(for: failure)). Use an address of this machine, such "
                    + "as 127.0.0.1 or 0.0.0.0.")
        }
    }

    static func privileged(port: Int) -> RoomError {
        RoomError(
            .listenFailed,
            "Cannot listen on port \(port): Ports below 1024 need root or CAP_NET_BIND_SERVICE. Use a higher port.")
    }

    private static func reason(for failure: (any Error)?) -> String {
        switch failure {
        case is SocketAddressError.UnknownHost: "no machine has this name or address"
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case let error?: "\(error)"
        case nil: "no port given"
        }
    }

    /// Closes the listener and every connection.
    func stop() async {
        try? await channel.close()
        try? await group.shutdownGracefully()
    }

    private static func bootstrap(
        _ group: MultiThreadedEventLoopGroup, _ routes: Routes, _ delegate: any SignallingDelegate,
        _ connections: Connections
    ) -> ServerBootstrap {
        ServerBootstrap(group: group)
            // Without free descriptors, the listener pauses for a second and continues.
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptBackoffHandler())
                }
            }
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            // NIO keeps a buffer for each connection. By default, it grows to 8 KiB for the client's SDP, and stays.
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: receiveBuffer))
            .childChannelOption(
                .writeBufferWaterMark, value: .init(low: maximumUnsent / 2, high: maximumUnsent)
            )
            .childChannelInitializer { channel in
                let isAdmitted = connections.admit(channel)
                return channel.eventLoop.makeCompletedFuture {
                    try connections.addTLS(to: channel)
                    guard isAdmitted else {
                        return try channel.pipeline.syncOperations.addHandler(RefusingHandler())
                    }
                    try configure(channel, routes, delegate, connections)
                }
            }
    }

    private static func configure(
        _ channel: any Channel, _ routes: Routes, _ delegate: any SignallingDelegate, _ connections: Connections
    ) throws {
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: Signalling.maximumMessageLength, automaticErrorHandling: true,
            shouldUpgrade: { channel, head in
                let peer = ClientAddress(channel.remoteAddress?.ipAddress)
                let admitted =
                    Routes.path(of: head.uri) == Signalling.webSocketPath
                    && routes.origins.admitsOrigin(head.headers, peer)
                return channel.eventLoop.makeSucceededFuture(admitted ? HTTPHeaders() : nil)
            },
            upgradePipelineHandler: { channel, head in
                channel.eventLoop.makeCompletedFuture {
                    let peer = ClientAddress(channel.remoteAddress?.ipAddress)
                    let place = routes.origins.place(of: head.headers, peerIsLoopback: peer.isLoopback)
                    let client = ClientAddress(of: peer, head.headers)
                    let connection = SignallingConnection(
                        id: connections.next(), channel: channel, place: place, client: client,
                        refusals: routes.refusals
                    ) { [limits = routes.limits] in limits.countGuess(at: $0, from: client, now: .current) }
                    try channel.pipeline.syncOperations.addHandler(
                        JoinLimitHandler(connection: connection), position: .first)
                    try channel.pipeline.syncOperations.addHandlers([
                        NIOWebSocketFrameAggregator(
                            minNonFinalFragmentSize: 1, maxAccumulatedFrameCount: 64,
                            maxAccumulatedFrameSize: Signalling.maximumMessageLength),
                        WebSocketHandler(connection: connection, delegate: delegate, pace: connections.messagePace),
                    ])
                }
            })
        try channel.pipeline.syncOperations.configureHTTPServerPipeline(
            withPipeliningAssistance: true,
            withServerUpgrade: (
                upgraders: [upgrader],
                completionHandler: { context in
                    context.pipeline.removeHandler(name: HTTPHandler.name, promise: nil)
                }
            ),
            withErrorHandling: true)
        try channel.pipeline.syncOperations.addHandler(HTTPHandler(routes: routes), name: HTTPHandler.name)
    }
}

/// Limits the open connections, and numbers the WebSockets.
private final class Connections: Sendable {
    let messagePace: Pace
    private let tls: TLSIdentity?
    private let limits: AccessLimits
    private let quota = ConnectionQuota()
    private let refusals: RefusalLog
    private let issued = Atomic<UInt64>(0)

    init(messagePace: Pace, tls: TLSIdentity?, limits: AccessLimits, refusals: RefusalLog) {
        self.messagePace = messagePace
        self.tls = tls
        self.limits = limits
        self.refusals = refusals
    }

    func admit(_ channel: any Channel) -> Bool {
        let address = ClientAddress(channel.remoteAddress?.ipAddress)
        guard Descriptors.areLeft(besides: Descriptors.connectionReserve), quota.admit(address) else {
            refusals.write("connection refused", RefusingHandler.error, address, now: .current)
            return false
        }
        channel.closeFuture.whenComplete { _ in self.quota.release(address) }
        return true
    }

    /// Adds TLS with the present certificate, if the server has one.
    func addTLS(to channel: any Channel) throws {
        guard let tls else { return }
        let client = ClientAddress(channel.remoteAddress?.ipAddress)
        guard limits.admitHandshake(from: client, now: .current) else {
            refusals.write("TLS handshake refused", Self.tooManyHandshakes, client, now: .current)
            throw Self.tooManyHandshakes
        }
        try channel.pipeline.syncOperations.addHandlers([
            PlainRequestHandler(), NIOSSLServerHandler(context: tls.context),
            HandshakeHandler(client: client, refusals: refusals),
        ])
    }

    private static let tooManyHandshakes = RoomError(
        .tooManyRequests, "This address begins too many connections with TLS. Keep connections open.")

    func next() -> UInt64 { issued.add(1, ordering: .relaxed).newValue }
}
