internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol
internal import ServerCore

extension SessionSettings {
    /// Sessions with sockets of this machine: its listen addresses and its certificate.
    ///
    /// - Parameter port: the port of all sessions. Nil gives each session an ICE agent and sockets of its own.
    convenience init(
        loop: EventLoop, certificate: Certificate, scope: ListeningScope, port: LoopBound<MediaPort>? = nil,
        relays: RelayService? = nil, grace: TimeInterval = SessionSettings.defaultGrace,
        mostReceivers: Int = ReceiverPool().maximum,
        impairment: (@Sendable () -> Impairment?)?
    ) {
        self.init(
            loop: loop, grace: grace, mostReceivers: mostReceivers, broadcast: SignallingConnection.broadcast,
            iceServers: { relays?.servers(for: $0) ?? [] }
        ) { role, place throws(RoomError) in
            guard port != nil || Descriptors.areLeft(besides: Descriptors.sessionReserve) else {
                throw RoomError(
                    .serverFull,
                    "The server has no free file descriptors. Raise its limit (ulimit -n), or try later.")
            }
            var configuration = PeerConfiguration(
                iceRole: role, certificate: certificate, cname: SessionSettings.cname, scope: scope)
            if scope == .any { configuration.scope = .any(for: place) }
            configuration.port = port
            configuration.releasesHandshake = true
            configuration.pathTimeout = grace
            configuration.pacingBurst = PeerSessionConfiguration.serverPacingBurst
            configuration.impairment = impairment?()
            do throws(TransportError) {
                return try Peer(loop: loop, configuration: configuration)
            } catch {
                throw RoomError(.mediaConnectionFailed, "The server cannot open a media session: \(error.message)")
            }
        }
    }
}

extension ListeningScope {
    /// Loopback is of use only on this machine, and only a client that is known to be here may name it in a candidate.
    fileprivate static func any(for place: ClientPlace) -> ListeningScope {
        switch place {
        case .here: .any
        case .unknown: .anyTryingNoLoopback
        case .elsewhere: .anyButLoopback
        }
    }
}
