internal import Foundation
internal import NIOCore
internal import RoomProtocol

/// Refuses the first request on a connection beyond the limit, and closes it.
final class RefusingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How long a silent client may keep the connection.
    private static let deadline = TimeAmount.seconds(1)

    static let error = RoomError(.serverFull, "The server has reached its limit of connections. Try later.")

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        context.eventLoop.scheduleTask(in: Self.deadline) { channel.close(promise: nil) }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let body = (try? JSONEncoder().encode(Problem(Self.error))).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let answer =
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n"
            + "content-length: \(body.utf8.count)\r\nconnection: close\r\n\r\n\(body)"
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(channel.allocator.buffer(string: answer))).whenComplete { _ in
            channel.close(promise: nil)
        }
    }
}
