internal import ClientCore
internal import PeerIO
internal import PeerLoop
internal import RTP

/// Shared by all rooms of this process: one loop thread for transport, and one certificate.
enum RoomLoop {
    /// Lives as long as the process.
    static let shared = EventLoop(name: "connectlive")
    private static let certificate = Result { () throws(TransportError) in try Certificate() }

    /// Creates a peer on the loop. Its own random numbers are secret, so it ignores the seed of the request.
    static func makePeer(_ request: PeerRequest) throws(TransportError) -> Peer {
        var configuration = PeerConfiguration(
            iceRole: request.role, certificate: try certificate.get(), cname: request.cname,
            scope: .reaching(request.server, and: request.servers),
            impairment: request.impairment)
        configuration.connectTimeout = request.connectTimeout
        configuration.servers = request.servers
        configuration.pathTimeout = request.pathTimeout
        return try Peer(loop: shared, configuration: configuration)
    }
}
