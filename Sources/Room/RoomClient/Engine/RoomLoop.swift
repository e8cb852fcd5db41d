internal import PeerIO
internal import RTP
internal import RoomProtocol

/// Shared by all rooms of this process: one loop thread for transport, and one certificate.
enum RoomLoop {
    /// Lives as long as the process.
    static let shared = EventLoop(name: "connectlive")
    private static let certificate = Result { () throws(TransportError) in try Certificate() }

    static func peerConfiguration(
        role: ICERole, cname: String, scope: ListeningScope, impairment: Impairment?
    ) throws(TransportError) -> PeerConfiguration {
        var configuration = PeerConfiguration(
            iceRole: role, certificate: try certificate.get(), cname: cname, scope: scope, impairment: impairment)
        configuration.connectTimeout = mediaConnectTimeout
        return configuration
    }

    /// From the descriptions to a secured session. Joining may take 10 s in all.
    private static let mediaConnectTimeout = TimeInterval.seconds(8)
}

extension RoomError {
    /// Media cannot flow to or from the server, because of a transport error.
    init(_ error: TransportError, session: SessionDirection) {
        self.init(
            error.code == "transport.connection-lost" ? .connectionLost : .mediaConnectionFailed,
            "The \(session.rawValue) session with the server failed: "
                + error.message.prefix(1).lowercased() + error.message.dropFirst())
    }
}
