internal import Foundation
internal import NIOCore
internal import NIOWebSocket
internal import RoomProtocol

/// What the rooms are told about connections; called on NIO's threads.
protocol SignallingDelegate: AnyObject, Sendable {
    func received(_ envelope: Envelope<ClientMessage>, from connection: SignallingConnection)
    func disconnected(_ connection: SignallingConnection)
}

/// Reads messages from one WebSocket, watches that its client lives, and closes it when it misbehaves.
final class WebSocketHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    /// How often the client is pinged, and after how much silence it is taken as gone: a closed laptop or a cut network
    /// shows within 10 s, and a cut of 5 s (TCP tries again 6.2 s after the first loss) is survived.
    static let pingInterval = TimeAmount.seconds(2)
    static let silenceLimit = TimeAmount.seconds(8)
    static let joinDeadline = TimeAmount.seconds(10)

    private let connection: SignallingConnection
    private let delegate: any SignallingDelegate
    private var lastHeard = NIODeadline.now()
    private let opened = NIODeadline.now()
    private var hasJoined = false
    private var watch: RepeatedTask?
    private var isClosing = false

    init(connection: SignallingConnection, delegate: any SignallingDelegate) {
        self.connection = connection
        self.delegate = delegate
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        watch = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.pingInterval, delay: Self.pingInterval) { _ in
            bound.value.handler.check(bound.value.context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        watch?.cancel()
        watch = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        watch?.cancel()
        watch = nil
        delegate.disconnected(connection)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        lastHeard = .now()
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text: read(frame.unmaskedData, context)
        case .ping:
            context.writeAndFlush(
                wrapOutboundOut(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData)), promise: nil)
        case .connectionClose: close(.normalClosure, context)
        case .binary: close(.unacceptableData, context)
        default: break
        }
    }

    /// More than the high-water mark waits for a client that does not read: it is dropped, not waited for.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !context.channel.isWritable { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        close(.protocolError, context)
    }

    private func read(_ data: ByteBuffer, _ context: ChannelHandlerContext) {
        do throws(MessageRefused) {
            let envelope = try Envelope<ClientMessage>(json: Data(data.readableBytesView))
            if case .join = envelope.message { hasJoined = true }
            guard connection.beginHandling() else { return close(.policyViolation, context) }
            delegate.received(envelope, from: connection)
        } catch {
            connection.send(.error(Problem(error.error)), answering: error.id)
        }
    }

    private func check(_ context: ChannelHandlerContext) {
        let now = NIODeadline.now()
        if now - lastHeard > Self.silenceLimit || (!hasJoined && now - opened > Self.joinDeadline) {
            context.close(promise: nil)
            return
        }
        let ping = WebSocketFrame(fin: true, opcode: .ping, data: context.channel.allocator.buffer(capacity: 0))
        context.writeAndFlush(wrapOutboundOut(ping), promise: nil)
    }

    private func close(_ code: WebSocketErrorCode, _ context: ChannelHandlerContext) {
        guard !isClosing else { return }
        isClosing = true
        connection.end(code)
    }
}
