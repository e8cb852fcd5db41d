internal import ClientCore
internal import NIOCore
internal import NIOSSL
internal import RoomProtocol
internal import RoomTLS
internal import Synchronization

/// What makes TLS connections to one server.
struct TLSClient: Sendable {
    private let context: NIOSSLContext
    /// The name in the certificate and in the handshake (RFC 6066, section 3). Nil for a numeric address, which NIO compares
    /// with the addresses in the certificate.
    private let name: String?
    private let pinned: NIOSSLCertificate?
    /// Whether the certificate has to be for the name.
    private let checksName: Bool

    /// How long the end of a connection waits for the server's farewell.
    private static let shutdownTimeout = SignallingDeadlines.leave.amount

    /// - Throws: `setting.invalid` if the authorities cannot be read, and 1305 if the server file is gone.
    init(to address: ServerAddress, trusting trust: ServerTrust) throws(RoomError) {
        var configuration = Self.configuration
        name = Self.isNumeric(address.host) ? nil : address.host
        switch trust {
        case .system:
            (pinned, checksName) = (nil, true)
            context = try SystemTrust.shared.context(configuration)
            return
        case .authorities(let path):
            (pinned, checksName) = (nil, true)
            configuration.trustRoots = .certificates(try Self.authorities(in: path))
        case .serverFile(let path):
            let pem = try PinnedCertificates.shared.pem(of: address, in: path)
            guard let certificate = try? NIOSSLCertificate.fromPEMBytes(Array((pem ?? "").utf8)).first else {
                throw RoomError(
                    .serverUnreachable,
                    "The server \(address) has ended: its file \(path) is gone, or names another server. Start it again."
                )
            }
            (pinned, checksName) = (certificate, false)
            // The pinned certificate is compared instead of these.
            configuration.trustRoots = .certificates([certificate])
            configuration.certificateVerification = .noHostnameVerification
        }
        context = try Self.context(configuration)
    }

    /// For a look at a certificate that was refused: sends nothing but the handshake.
    private init(examining address: ServerAddress) throws(RoomError) {
        var configuration = Self.configuration
        configuration.certificateVerification = .none
        name = Self.isNumeric(address.host) ? nil : address.host
        (pinned, checksName) = (nil, false)
        context = try Self.context(configuration)
    }

    static func examiner(of address: ServerAddress) throws(RoomError) -> TLSClient { try TLSClient(examining: address) }

    private static var configuration: TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        configuration.shutdownTimeout = shutdownTimeout
        return configuration
    }

    fileprivate static func context(_ configuration: TLSConfiguration) throws(RoomError) -> NIOSSLContext {
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw RoomError(
                .settingInvalid,
                "The authorities of server certificates cannot be used: \(error). Correct \(ServerTrust.variable), or "
                    + "install the system's (ca-certificates).")
        }
    }

    private static func authorities(in path: String) throws(RoomError) -> [NIOSSLCertificate] {
        do throws(PEMProblem) {
            return try PEMFile.certificates(path)
        } catch {
            throw RoomError(
                .settingInvalid,
                "The file \(path) with the authorities of room servers \(error.text). Name a PEM file with their "
                    + "certificates.")
        }
    }

    private static func isNumeric(_ host: String) -> Bool {
        // The zone of a link-local address (RFC 4007) is not part of it.
        let address = host.contains(":") ? host.prefix { $0 != "%" } : host[...]
        return (try? SocketAddress(ipAddress: String(address), port: 0)) != nil
    }

    /// Adds TLS as the first handler of a connection. Called on its event loop.
    func addHandler(to channel: any Channel) throws {
        let handler: NIOSSLClientHandler
        if let pinned {
            handler = try NIOSSLClientHandler(
                context: context, serverHostname: name,
                customVerificationCallback: { certificates, promise in
                    promise.succeed(certificates.first == pinned ? .certificateVerified : .failed)
                })
        } else if let name, checksName {
            // NIO alone would also accept a certificate for the address to which the name leads, and an attacker who forges
            // the reply of a name server has one for his own. Nothing is sent before this check.
            handler = try NIOSSLClientHandler._makeSSLClientHandler(
                context: context, serverHostname: name,
                additionalPeerCertificateVerificationCallback: { certificate, channel in
                    ServerCertificate.isFor(name, certificate)
                        ? channel.eventLoop.makeSucceededVoidFuture()
                        : channel.eventLoop.makeFailedFuture(NIOSSLExtraError.failedToValidateHostname)
                })
        } else {
            handler = try NIOSSLClientHandler(context: context, serverHostname: name)
        }
        try channel.pipeline.syncOperations.addHandler(handler, position: .first)
    }
}

/// The certificates of the servers of this user, from the server file. It names one server at a time: while another one runs
/// too, and has replaced the file, connections to the first use the certificate that the file had last.
private final class PinnedCertificates: Sendable {
    static let shared = PinnedCertificates()

    private struct Place: Hashable {
        var path: String
        var server: ServerAddress
    }

    /// In PEM.
    private let last = Mutex<[Place: String]>([:])

    /// Returns nil if the file does not exist, or has never named this server.
    func pem(of address: ServerAddress, in path: String) throws(RoomError) -> String? {
        guard let file = try ServerFile.read(from: path) else { return nil }
        let place = Place(path: path, server: address)
        guard address == (try? ServerAddress(file.server)) else { return last.withLock { $0[place] } }
        last.withLock { $0[place] = file.certificate }
        return file.certificate
    }
}

/// The authorities that the system knows, read once for a time: a bundle has about 140 certificates.
private final class SystemTrust: Sendable {
    static let shared = SystemTrust()

    /// A system that updates its authorities is followed after this time.
    private static let lifetime = Duration.seconds(600)

    private let kept = Mutex<(context: NIOSSLContext, read: ContinuousClock.Instant)?>(nil)

    func context(_ configuration: TLSConfiguration) throws(RoomError) -> NIOSSLContext {
        let now = ContinuousClock.now
        if let kept = kept.withLock({ $0 }), now - kept.read < Self.lifetime { return kept.context }
        let context = try TLSClient.context(configuration)
        kept.withLock { $0 = (context, now) }
        return context
    }
}
