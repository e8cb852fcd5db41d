internal import Foundation
internal import NIOCore
internal import NIOSSL
internal import NIOWebSocket
internal import RTP
internal import RoomProtocol
internal import ServerCore

/// Events of connections for the rooms, called on NIO's threads.
protocol SignallingDelegate: AnyObject, Sendable {
    func received(_ request: ClientRequest, from connection: SignallingConnection)
    /// - Parameter lost: when the client was last heard, if it may resume. Nil if it has left.
    func disconnected(_ connection: SignallingConnection, lost: MonotonicTime?)
    /// Passes the time of the client's last media to `then`, on another thread. Not called if the rooms are closed.
    func findLastMedia(from connection: SignallingConnection, then: @escaping @Sendable (MonotonicTime) -> Void)
}

/// Reads the messages of one WebSocket, checks that its client is alive, and closes it on errors.
final class WebSocketHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private static let pingInterval = TimeAmount(SignsOfLife.pingInterval)
    /// Checks of all connections happen at multiples of this, so that the thread wakes for many of them at once.
    private static let tick = 100_000_000 as UInt64
    /// A client may send a burst of messages, candidates above all, and then so many a second.
    static let messageBurst = 2000
    static let messagesPerSecond = 200
    /// The same of their KiB: a description of 128 KiB takes long to parse, and one thread parses those of all clients.
    static let (kibibyteBurst, kibibytesPerSecond) = (2048, 256)

    private let connection: SignallingConnection
    private let delegate: any SignallingDelegate
    /// Bounds the frames of this client.
    private var pace: Pace
    private var volume = Pace(
        burst: kibibyteBurst, interval: RTP.TimeInterval(nanoseconds: 1_000_000_000 / Int64(kibibytesPerSecond)))
    private var liveness = ClientLiveness(now: WebSocketHandler.now)
    private var hasPinged = false
    private var watch: Scheduled<Void>?
    /// The check at the end of a silence that ends before the next ping.
    private var lastWatch: Scheduled<Void>?

    init(connection: SignallingConnection, delegate: any SignallingDelegate, pace: Pace) {
        self.connection = connection
        self.delegate = delegate
        self.pace = pace
    }

    func handlerAdded(context: ChannelHandlerContext) {
        scheduleWatch(context)
    }

    private func scheduleWatch(_ context: ChannelHandlerContext) {
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        let time = (NIODeadline.now() + Self.pingInterval).uptimeNanoseconds
        watch = context.eventLoop.scheduleTask(deadline: .uptimeNanoseconds(time / Self.tick * Self.tick)) {
            bound.value.handler.check(bound.value.context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { stopWatching() }

    func channelInactive(context: ChannelHandlerContext) {
        stopWatching()
        connection.didClose()
        delegate.disconnected(connection, lost: connection.hasLeft ? nil : liveness.lastHeard)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let now = Self.now
        liveness.heard(now: now)
        guard !connection.isEnding else { return }
        let frame = unwrapInboundIn(data)
        guard pace.admits(now: now), volume.admits(1 + frame.data.readableBytes / 1024, now: now) else {
            connection.willEnd(because: "too many requests")
            connection.willLeave()
            return connection.close(Self.tooManyMessages)
        }
        switch frame.opcode {
        case .text: read(frame.unmaskedData)
        case .ping:
            context.writeAndFlush(
                wrapOutboundOut(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData)), promise: nil)
        case .connectionClose:
            // Proxies that restart close with other codes, such as 1001.
            var data = frame.unmaskedData
            if data.readWebSocketErrorCode() == .normalClosure { connection.willLeave() }
            connection.end(.normalClosure)
        case .binary:
            connection.willLeave()
            connection.end(.unacceptableData)
        default: break
        }
    }

    private static let tooManyMessages = Closing(
        reason: .disconnected,
        error: RoomError(
            .tooManyRequests,
            "The client sends too many messages. Send at most \(messagesPerSecond) with \(kibibytesPerSecond) KiB per second."
        ))
    private static let silent = Closing(
        reason: .disconnected,
        error: RoomError(.connectionLost, "The client was silent for too long. Connect again."))
    private static let lateToJoin = Closing(
        reason: .disconnected,
        error: RoomError(
            .outOfOrder,
            "No 'join' succeeded within \(Int(ClientLiveness.joinDeadline.seconds)) s. Connect again, and send it first."
        ))

    /// Closes the connection of a client that does not read, when more than the high-water mark waits.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard !context.channel.isWritable else { return }
        connection.willEnd(because: "does not read")
        context.close(promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A connection that breaks under TLS, or in which another machine interferes, is lost: its client may resume.
        let isLost = error is IOError || error is NIOSSLError || error is BoringSSLError
        connection.willEnd(because: isLost ? "connection closed" : "protocol error")
        if !isLost { connection.willLeave() }
        connection.end(.protocolError)
    }

    private func read(_ data: ByteBuffer) {
        let request: ClientRequest
        do throws(MessageRefused) {
            var envelope = try Envelope<ClientMessage>(json: Data(data.readableBytesView))
            // Answered while the rooms are busy, too. They get the first one, without its number: it shows that the client
            // has its newest secret.
            if case .ping = envelope.message, connection.hasJoined {
                connection.send(.pong, answering: envelope.id)
                guard !hasPinged else { return }
                hasPinged = true
                envelope.id = nil
            }
            request = ClientRequest(envelope)
        } catch {
            // The rooms count it.
            request = ClientRequest(error)
        }
        guard connection.beginHandling() else {
            connection.willEnd(because: "too many requests")
            connection.willLeave()
            return connection.end(.policyViolation)
        }
        delegate.received(request, from: connection)
    }

    private func check(_ context: ChannelHandlerContext) {
        scheduleWatch(context)
        closeIfSilent(context)
        scheduleLastWatch(context)
        let ping = WebSocketFrame(fin: true, opcode: .ping, data: context.channel.allocator.buffer(capacity: 0))
        context.writeAndFlush(wrapOutboundOut(ping), promise: nil)
    }

    private static var now: MonotonicTime { .current }

    private func closeIfSilent(_ context: ChannelHandlerContext) {
        switch liveness.verdict(now: Self.now, hasJoined: connection.hasJoined) {
        case .alive: break
        case .gone: drop(context)
        case .askForMedia:
            let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
            delegate.findLastMedia(from: connection) { time in
                bound.eventLoop.execute { bound.value.handler.heardMedia(at: time, bound.value.context) }
            }
        }
    }

    private func heardMedia(at time: MonotonicTime, _ context: ChannelHandlerContext) {
        liveness.heardMedia(at: time)
        if Self.now >= liveness.silenceEnds {
            drop(context)
        } else {
            scheduleLastWatch(context)
        }
    }

    /// Sends the reason if the network takes it, and closes at once.
    private func drop(_ context: ChannelHandlerContext) {
        connection.willEnd(because: "silent")
        connection.close(connection.hasJoined ? Self.silent : Self.lateToJoin)
        context.close(promise: nil)
    }

    /// Schedules a check at the end of the silence, if that is before the next ping.
    private func scheduleLastWatch(_ context: ChannelHandlerContext) {
        let end = NIODeadline.uptimeNanoseconds(liveness.silenceEnds.nanoseconds)
        guard watch != nil, end < .now() + Self.pingInterval else { return }
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        lastWatch?.cancel()
        lastWatch = context.eventLoop.scheduleTask(deadline: end) {
            bound.value.handler.closeIfSilent(bound.value.context)
        }
    }

    private func stopWatching() {
        watch?.cancel()
        watch = nil
        lastWatch?.cancel()
        lastWatch = nil
    }
}

extension TimeAmount {
    fileprivate init(_ interval: RTP.TimeInterval) { self = .nanoseconds(interval.nanoseconds) }
}
