internal import Foundation
internal import NIOCore
internal import RoomProtocol

/// The first handler of a connection with TLS: lets TLS pass, and answers a plain HTTP request. A browser that opens the page
/// at `http://` goes on to `https://`; other clients get the reason.
final class PlainRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The longest request that is read before it is answered.
    private static let longestRequest = 8 * 1024
    /// How long the rest of a request may take.
    private static let deadline = TimeAmount.seconds(2)
    /// The first byte of a TLS record with a ClientHello (RFC 8446, section 5.1).
    private static let handshakeRecord = UInt8(22)

    private var request = ""
    private var isAnswered = false
    private var timer: Scheduled<Void>?

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if request.isEmpty, buffer.readableBytesView.first == Self.handshakeRecord {
            context.fireChannelRead(data)
            return context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
        guard !isAnswered else { return }
        if timer == nil {
            let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
            timer = context.eventLoop.scheduleTask(in: Self.deadline) {
                bound.value.handler.answer(bound.value.context)
            }
        }
        request += buffer.readString(length: min(buffer.readableBytes, Self.longestRequest - request.utf8.count)) ?? ""
        if request.contains("\r\n\r\n") || request.utf8.count >= Self.longestRequest { answer(context) }
    }

    /// Does not let the TLS handler know that the plain bytes have been read.
    func channelReadComplete(context: ChannelHandlerContext) {
        if request.isEmpty { context.fireChannelReadComplete() }
    }

    private func answer(_ context: ChannelHandlerContext) {
        guard !isAnswered else { return }
        isAnswered = true
        // From this handler on, so that the TLS handler has no part in it.
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        let text = context.channel.allocator.buffer(string: Self.response(to: request))
        context.writeAndFlush(wrapOutboundOut(text)).whenComplete { _ in bound.value.close(promise: nil) }
    }

    static func response(to request: String) -> String {
        let lines = request.split(separator: "\r\n", omittingEmptySubsequences: false)
        let start = lines[0].split(separator: " ", omittingEmptySubsequences: false)
        let fields = lines.dropFirst().prefix { !$0.isEmpty }.map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (
                parts.first?.lowercased() ?? "", parts.dropFirst().first?.trimmingCharacters(in: .whitespaces) ?? ""
            )
        }
        func field(_ name: String) -> String? { fields.first { $0.0 == name }?.1 }
        if start.count == 3, start[0] == "GET", field("accept")?.contains("text/html") == true,
            let host = field("host"),
            isHost(host), isTarget(start[1])
        {
            // Temporary, because a browser keeps a permanent one, also if the server later runs without TLS.
            return response(
                "307 Temporary Redirect", "text/plain; charset=utf-8", "This server uses TLS.\n",
                ["location: https://\(host)\(start[1])"])
        }
        let problem = Problem(
            RoomError(.serverUnreachable, "The server takes TLS alone at this port. Use an address with https://."))
        let body = (try? JSONEncoder().encode(problem)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return response("400 Bad Request", "application/json", body, [])
    }

    private static func response(_ status: String, _ type: String, _ body: String, _ fields: [String]) -> String {
        let all =
            ["HTTP/1.1 \(status)", "content-type: \(type)", "content-length: \(body.utf8.count)", "connection: close"]
            + fields
        return all.joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    private static func isHost(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 255 && text.wholeMatch(of: /[A-Za-z0-9.:\[\]_-]+/) != nil
    }

    private static func isTarget(_ text: Substring) -> Bool {
        text.hasPrefix("/") && text.utf8.allSatisfy { $0 > 32 && $0 < 127 }
    }
}
