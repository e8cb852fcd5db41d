internal import NIOCore
internal import NIOSSL
internal import NIOTLS
internal import RoomProtocol

/// Behind the TLS handler: ends a handshake that takes too long, and logs those that fail. A
/// connection that ends within its handshake is not logged: probes of ports, and plain requests that were answered, do.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// The time for a handshake.
    static let deadline = TimeAmount.seconds(10)

    private let client: ClientAddress
    private let refusals: RefusalLog
    private var timer: Scheduled<Void>?

    init(client: ClientAddress, refusals: RefusalLog) {
        self.client = client
        self.refusals = refusals
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: Self.deadline) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        context.fireUserInboundEventTriggered(event)
        guard case .handshakeCompleted = event as? TLSUserEvent else { return }
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if case NIOSSLError.handshakeFailed(let cause) = error, cause != .sslError([.eofDuringHandshake]) {
            refusals.write(
                "TLS handshake failed", RoomError(.serverCertificate, Self.sentence("\(cause)")), client, now: .current)
        }
        context.fireErrorCaught(error)
    }

    /// A client reports by an alert why it does not accept the certificate (RFC 8446, section 6.2).
    static func sentence(_ cause: String) -> String {
        let alerts = [
            "ALERT_UNKNOWN_CA": "does not know the certificate's authority",
            "ALERT_CERTIFICATE_UNKNOWN": "does not accept the certificate",
            "ALERT_BAD_CERTIFICATE": "does not accept the certificate",
            "ALERT_CERTIFICATE_EXPIRED": "finds the certificate expired",
        ]
        guard let alert = alerts.first(where: { cause.contains($0.key) }) else {
            return "The client ended the handshake, or has no common version of TLS: this server has 1.2 and 1.3."
        }
        return "The client \(alert.value). Give the server a certificate for the name that the client uses."
    }
}
