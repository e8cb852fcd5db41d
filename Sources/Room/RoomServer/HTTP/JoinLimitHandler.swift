internal import NIOCore
internal import NIOWebSocket

/// Ends the WebSocket of a client that sends a lot before it joins a room. A frame may have 256 KiB, and many clients
/// could leave it unfinished.
final class JoinLimitHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// The most bytes before the client has joined. A `join` has some hundred.
    static let limit = 16 * 1024

    private let connection: SignallingConnection
    private var count = 0

    init(connection: SignallingConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !connection.hasJoined else {
            context.fireChannelRead(data)
            return context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
        count += unwrapInboundIn(data).readableBytes
        guard count <= Self.limit else { return connection.end(.messageTooLarge) }
        context.fireChannelRead(data)
    }
}
