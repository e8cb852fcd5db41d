internal import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket
internal import RTP

/// Receives one request at a time, calls the routes, and writes the response.
final class HTTPHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    static let name = "connectlive.http"

    /// Headers of every response: the page loads nothing from other origins, and other pages cannot embed it.
    private static let securityHeaders: [(String, String)] = [
        (
            "content-security-policy",
            "default-src 'self'; connect-src 'self' ws: wss:; media-src 'self' blob: mediastream:; "
                + "img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
        ),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("permissions-policy", "camera=(self), microphone=(self)"),
        ("cache-control", "no-store"),
    ]

    /// How long a connection may stay plain HTTP. A connection that sends nothing, or sends it slowly, must not keep
    /// others out. Browsers reconnect.
    private static let lifetime = TimeAmount.seconds(30)

    private let routes: Routes
    private var head: HTTPRequestHead?
    /// Whether the present request is HEAD, whose response has no body.
    private var omitsBody = false
    private var body: [UInt8] = []
    private var end: Scheduled<Void>?

    init(routes: Routes) { self.routes = routes }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        end = context.eventLoop.scheduleTask(in: Self.lifetime) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { end?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            omitsBody = head.method == .HEAD
            body = []
        case .body(let part):
            guard head != nil else { return }
            guard body.count + part.readableBytes <= Routes.maximumBodyLength else {
                self.head = nil
                return write(Routes.Response(status: .payloadTooLarge), keepAlive: false, context)
            }
            body.append(contentsOf: part.readableBytesView)
        case .end:
            guard let head else { return }
            self.head = nil
            respond(to: head, context)
        }
    }

    /// More than the high-water mark waits for a client that does not read, as one that pipelines thousands of requests:
    /// it is dropped, not waited for. All files of the page together are shorter.
    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !context.channel.isWritable { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A refused WebSocket continues as a plain request, and the routes respond with the reason.
        if error is NIOWebSocketUpgradeError { return }
        context.close(promise: nil)
    }

    private func respond(to head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let response = routes.answer(
            head, body: body, from: ClientAddress(context.remoteAddress?.ipAddress),
            now: .current)
        guard let later = response.later else { return write(response, keepAlive: head.isKeepAlive, context) }
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        context.eventLoop.makeFutureWithTask(later).whenSuccess { response in
            bound.value.handler.write(response, keepAlive: head.isKeepAlive, bound.value.context)
        }
    }

    private func write(_ response: Routes.Response, keepAlive: Bool, _ context: ChannelHandlerContext) {
        var headers = HTTPHeaders(Self.securityHeaders + response.headers)
        if response.status != .noContent {
            headers.add(name: "content-type", value: response.contentType)
            headers.add(name: "content-length", value: String(response.body.count))
        }
        headers.add(name: "connection", value: keepAlive ? "keep-alive" : "close")
        let responseHead = HTTPResponseHead(version: .http1_1, status: response.status, headers: headers)
        context.write(wrapOutboundOut(.head(responseHead)), promise: nil)
        write(omitsBody ? [] : response.body[...], keepAlive: keepAlive, context)
    }

    /// Far below the high-water mark: a client that reads may have a body of any length, such as a list of many rooms.
    private static let partLength = HTTPListener.maximumUnsent / 4

    /// Writes the rest of a body, each part when the one before has left.
    private func write(_ rest: ArraySlice<UInt8>, keepAlive: Bool, _ context: ChannelHandlerContext) {
        let part = rest.prefix(Self.partLength)
        let later = rest.dropFirst(Self.partLength)
        let body = part.isEmpty ? nil : context.channel.allocator.buffer(bytes: part)
        guard later.isEmpty else {
            guard let body else { return }
            let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
            return context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(body)))).whenSuccess {
                bound.value.handler.write(later, keepAlive: keepAlive, bound.value.context)
            }
        }
        if let body { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        if !keepAlive {
            let channel = context.channel
            written.whenComplete { _ in channel.close(promise: nil) }
        }
    }
}

extension MonotonicTime {
    /// NIO's present time.
    static var current: MonotonicTime { MonotonicTime(nanoseconds: NIODeadline.now().uptimeNanoseconds) }
}

extension SocketAddress {
    /// Whether the address is the machine's own (127.0.0.0/8 or ::1).
    var isLoopback: Bool { ClientAddress(ipAddress).isLoopback }
}
