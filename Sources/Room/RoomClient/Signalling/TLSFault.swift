internal import ClientCore
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import NIOTLS
internal import RoomProtocol
internal import RoomTLS

/// Why a TLS handshake failed.
enum TLSFault: Equatable {
    /// The certificate is not accepted.
    case certificate
    /// The certificate is for another name.
    case name
    /// The server answers in plain text.
    case noTLS
    /// The two ends have no common version or algorithm, or the server gave up.
    case handshake

    /// Nil for errors of other kinds.
    init?(_ error: any Error) {
        switch error {
        case let error as NIOSSLExtraError where error == .failedToValidateHostname: self = .name
        case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate: self = .certificate
        case NIOSSLError.handshakeFailed(let cause):
            let text = "\(cause)"
            if text.contains("CERTIFICATE_VERIFY_FAILED") {
                self = .certificate
            } else if ["WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST"].contains(where: text.contains) {
                self = .noTLS
            } else {
                self = .handshake
            }
        case is BoringSSLError: self = .handshake
        default: return nil
        }
    }
}

/// Explains why a server's certificate was refused. The check does not say, so a further connection looks at the certificate;
/// it sends nothing but the handshake.
enum CertificateExamination {
    /// The time for the further connection.
    private static let limit = TimeAmount.seconds(3)

    static func error(
        for address: ServerAddress, _ trust: ServerTrust, isForAnotherName: Bool
    ) async -> RoomError {
        let certificate = await certificate(of: address)
        return error(
            address, trust, isForAnotherName, certificate.map(ServerCertificate.init), now: Date().timeIntervalSince1970
        )
    }

    /// - Parameter certificate: nil if it was not seen
    static func error(
        _ address: ServerAddress, _ trust: ServerTrust, _ isForAnotherName: Bool, _ certificate: ServerCertificate?,
        now: Double
    ) -> RoomError {
        func error(_ sentence: String) -> RoomError {
            RoomError(.serverCertificate, "The certificate of the server \(address) \(sentence)")
        }
        if let certificate, now > certificate.expires {
            return error(
                "has expired on \(ServerCertificate.day(certificate.expires)). Renew it on the server, or set the clock of "
                    + "this machine.")
        }
        if let certificate, now < certificate.begins {
            return error(
                "is valid from \(ServerCertificate.day(certificate.begins)) on. Set the clock of this machine, or of the "
                    + "machine that made the certificate.")
        }
        if isForAnotherName {
            let names = (certificate?.names ?? []).filter(isName)
            let shown = names.isEmpty ? "" : " but for \(names.prefix(5).joined(separator: ", "))"
            return error(
                "is not for \(address.host)\(shown). Use a name of the certificate in the address, or give the server a "
                    + "certificate for this name.")
        }
        switch trust {
        case .system:
            return error(
                "is not signed by an authority that this machine knows. Name its authority in a PEM file "
                    + "(\(ServerTrust.variable)), or give the server a certificate of a known one.")
        case .authorities(let path):
            return error("is not signed by an authority in \(path). Add its authority to this file.")
        case .serverFile:
            return error(
                "is not the one in the server file of this user. Another program may have its port: start the server again."
            )
        }
    }

    /// Whether a name of a certificate that nobody has checked may be shown. A name of a host has at most 253 bytes.
    private static func isName(_ name: String) -> Bool {
        name.utf8.count <= 253 && name.wholeMatch(of: /[A-Za-z0-9.:*_-]+/) != nil
    }

    private static func certificate(of address: ServerAddress) async -> NIOSSLCertificate? {
        guard let client = try? TLSClient.examiner(of: address) else { return nil }
        let group = MultiThreadedEventLoopGroup.singleton
        let seen = group.any().makePromise(of: NIOSSLCertificate?.self)
        do {
            let channel = try await ClientBootstrap(group: group).connectTimeout(limit)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try client.addHandler(to: channel)
                        try channel.pipeline.syncOperations.addHandler(CertificateReader(seen))
                    }
                }
                .connect(host: address.host, port: address.port).get()
            let timer = channel.eventLoop.scheduleTask(in: limit) { seen.succeed(nil) }
            defer {
                timer.cancel()
                channel.close(promise: nil)
            }
            return try await seen.futureResult.get()
        } catch {
            seen.succeed(nil)
            return nil
        }
    }
}

/// Reads the certificate at the end of the handshake.
private final class CertificateReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let seen: EventLoopPromise<NIOSSLCertificate?>

    init(_ seen: EventLoopPromise<NIOSSLCertificate?>) { self.seen = seen }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted = event as? TLSUserEvent {
            seen.succeed(try? context.channel.pipeline.syncOperations.nioSSL_peerCertificate())
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        seen.succeed(nil)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { seen.succeed(nil) }
}
