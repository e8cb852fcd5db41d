internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOWebSocket

/// A WebSocket that carries text in both directions, as the signalling of room servers does.
final class TextSocket: Sendable {
    private typealias Connection = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    private static let maximumLength = 1 << 20
    private let connection: Connection

    private init(_ connection: Connection) { self.connection = connection }

    /// - Parameters:
    ///   - subprotocol: requested from the server; nil for none.
    ///   - local: the address to connect from; nil for any.
    static func open(
        host: String, port: Int, path: String, subprotocol: String? = nil, from local: String? = nil
    ) async throws -> TextSocket {
        var headers = HTTPHeaders([("Host", "\(host):\(port)"), ("Content-Length", "0")])
        if let subprotocol { headers.add(name: "Sec-WebSocket-Protocol", value: subprotocol) }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: headers)
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        if let local { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: local, port: 0)) }
        let upgrade =
            try await bootstrap
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture { try negotiate(head, on: channel) }
            }
        return TextSocket(try await upgrade.get())
    }

    private static func negotiate(
        _ head: HTTPRequestHead, on channel: any Channel
    ) throws -> EventLoopFuture<Connection> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Connection>(
            maxFrameSize: maximumLength,
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOWebSocketFrameAggregator(
                            minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 64,
                            maxAccumulatedFrameSize: maximumLength))
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            })
        let configuration = NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: head, upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in
                channel.eventLoop.makeFailedFuture(BenchmarkError("The server refused the WebSocket."))
            })
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
            configuration: .init(upgradeConfiguration: configuration))
    }

    /// Calls `take` with each text; returns when the connection has ended.
    func read(_ take: (Data) -> Void) async {
        try? await connection.executeThenClose { inbound, outbound in
            for try await frame in inbound {
                switch frame.opcode {
                case .text: take(Data(frame.unmaskedData.readableBytesView))
                case .ping:
                    try await outbound.write(
                        WebSocketFrame(fin: true, opcode: .pong, maskKey: .random(), data: frame.unmaskedData))
                default: break
                }
            }
        }
    }

    func send(_ text: String) {
        let channel = connection.channel
        let frame = WebSocketFrame(
            fin: true, opcode: .text, maskKey: .random(), data: channel.allocator.buffer(string: text))
        channel.writeAndFlush(frame, promise: nil)
    }

    func close() { connection.channel.close(promise: nil) }
}
