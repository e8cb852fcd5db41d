internal import PeerIO
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// Shared by all sessions of a server: listen addresses, certificate, and numbering. On the loop only.
final class SessionSettings {
    let loop: EventLoop
    let cname = "server"
    private let certificate: Certificate
    private let scope: ListeningScope
    /// The port of all sessions. Nil gives each session an ICE agent and sockets of its own.
    private let port: LoopBound<MediaPort>?
    private let impairment: (@Sendable () -> Impairment?)?
    private var usedSSRCs: UInt32 = UInt32.random(in: 0x1000...0x7fff_ffff)

    init(
        loop: EventLoop, certificate: Certificate, scope: ListeningScope, port: LoopBound<MediaPort>? = nil,
        impairment: (@Sendable () -> Impairment?)?
    ) {
        self.loop = loop
        self.certificate = certificate
        self.scope = scope
        self.port = port
        self.impairment = impairment
    }

    /// Nil if each session has an ICE agent.
    var portStatistics: MediaPortStatistics? { port?.value.statistics }

    /// The sessions and the pairs of addresses of the port, likewise.
    var portCounts: (sessions: Int, pairs: Int)? { port.map { ($0.value.sessionCount, $0.value.pairCount) } }

    /// Closes the port. Every session must have ended, in an earlier turn.
    func close() { port?.value.close() }

    func nextSessionID() -> UInt64 { UInt64.random(in: 1...(1 << 62)) }

    /// Unique among the sessions of this loop.
    func nextSSRC() -> SSRC {
        usedSSRCs &+= 1
        return SSRC(usedSSRCs)
    }

    /// - Parameter place: where the client is. Loopback is of use only on this machine, and only a client that is known to
    ///   be here may name it in a candidate.
    func makePeer(_ role: ICERole, place: ClientPlace) throws(RoomError) -> Peer {
        guard port != nil || Descriptors.areLeft(besides: Descriptors.sessionReserve) else {
            throw RoomError(
                .serverFull,
                "The server has no free file descriptors. Raise its limit (ulimit -n), or try later.")
        }
        var configuration = PeerConfiguration(iceRole: role, certificate: certificate, cname: cname, scope: scope)
        if scope == .any {
            configuration.scope =
                switch place {
                case .here: .any
                case .unknown: .anyTryingNoLoopback
                case .elsewhere: .anyButLoopback
                }
        }
        configuration.port = port
        configuration.impairment = impairment?()
        do throws(TransportError) {
            return try Peer(loop: loop, configuration: configuration)
        } catch {
            throw RoomError(.mediaConnectionFailed, "The server cannot open a media session: \(error.message)")
        }
    }

    func start(_ peer: Peer) throws(RoomError) {
        do throws(TransportError) {
            try peer.start()
        } catch {
            throw RoomError(.mediaConnectionFailed, "The server cannot open a media session: \(error.message)")
        }
    }

    func connect(_ peer: Peer, to transport: TransportDescription, as role: DTLSRole) throws(RoomError) {
        do throws(TransportError) {
            try peer.setRemote(transport, dtlsRole: role)
        } catch {
            throw RoomError(.mediaConnectionFailed, "The description's transport is unusable: \(error.message)")
        }
    }

    /// Throws if a later description begins another transport (RFC 8829, section 5.7): a session has one.
    func requireSame(
        _ new: TransportDescription, as old: TransportDescription, _ code: RoomError.Code
    ) throws(RoomError) {
        guard new.iceUfrag == old.iceUfrag, new.icePwd == old.icePwd else {
            throw RoomError(
                code, "The description restarts ICE, which the server does not support. Join the room again.")
        }
        guard Set(new.fingerprints) == Set(old.fingerprints) else {
            throw RoomError(
                code, "The description has another certificate than before. Join the room again.")
        }
    }
}
