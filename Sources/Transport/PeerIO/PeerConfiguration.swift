package import PeerLoop
internal import PeerSession
package import RTP

/// The configuration of a `Peer` with OpenSSL and sockets.
package struct PeerConfiguration: Sendable {
    package var iceRole: ICERole
    package var certificate: Certificate
    /// Canonical name in RTCP (RFC 7022).
    package var cname: String
    package var scope: ListeningScope
    /// UDP ports to listen on. Nil lets the system choose.
    package var ports: ClosedRange<UInt16>?
    package var impairment: Impairment?
    /// The port to use, of the peer's loop, instead of an ICE agent. The other end then controls ICE.
    package var port: LoopBound<MediaPort>?
    /// STUN and TURN servers, without a `port`.
    package var servers = ICEServers()
    /// How long TURN servers may take for a relayed address before they are asked for the reason.
    package var relayTimeout = TimeInterval.seconds(3)
    /// The library that encrypts packets.
    package var srtp = SRTPLibrary.openSSL
    /// The longest outgoing RTP packet in bytes, without the MID extension.
    package var maximumPacketLength = PeerSessionConfiguration.standardPacketLength
    /// Timeout from `setRemote` to the end of the DTLS handshake. Then the peer fails with `transport.connect-timeout`.
    package var connectTimeout = TimeInterval.seconds(15)
    /// Time without an authenticated packet until `.disconnected` is reported.
    package var silence = TimeInterval.seconds(10)
    /// How long the other end may not respond to media before the peer fails with `transport.connection-lost` (RFC
    /// 7675, section 5.1). A peer that sends no media fails after 50 s without a response to ICE's checks.
    package var consent = TimeInterval.seconds(30)
    /// For how much longer the peer waits for another path to the other end.
    package var pathTimeout = TimeInterval.zero
    /// Whether to free the DTLS connection once the other end has the keys. Its close is then noticed 20 s later.
    package var releasesHandshake = false
    /// See `PeerSessionConfiguration.pacingBurst`.
    package var pacingBurst: TimeInterval?

    package init(
        iceRole: ICERole, certificate: Certificate, cname: String, scope: ListeningScope = .loopback,
        ports: ClosedRange<UInt16>? = nil, impairment: Impairment? = nil
    ) {
        self.iceRole = iceRole
        self.certificate = certificate
        self.cname = cname
        self.scope = scope
        self.ports = ports
        self.impairment = impairment
    }
}

/// The library that encrypts a peer's packets.
package enum SRTPLibrary: Sendable, CaseIterable {
    case openSSL
    case libSRTP2

    fileprivate func makeEngine(_ keys: inout SRTPKeys) throws -> SRTPEngine {
        switch self {
        case .openSSL: try OpenSSLSRTP(keys: &keys)
        case .libSRTP2: try LibSRTP(keys: &keys)
        }
    }
}

extension Peer {
    /// A peer with OpenSSL's DTLS and sockets.
    package convenience init(loop: EventLoop, configuration: PeerConfiguration) throws(TransportError) {
        let library = configuration.srtp
        var ofSession = PeerSessionConfiguration(
            cname: configuration.cname, seed: .random(in: UInt64.min...UInt64.max),
            maximumPacketLength: configuration.maximumPacketLength, silence: configuration.silence,
            consent: configuration.consent + configuration.pathTimeout,
            releasesHandshake: configuration.releasesHandshake)
        if let burst = configuration.pacingBurst { ofSession.pacingBurst = burst }
        let session = PeerSession(
            dtls: try OpenSSLDTLS(certificate: configuration.certificate), configuration: ofSession,
            scratch: loop.sessionScratch,
            makeSRTP: { try library.makeEngine(&$0) })
        try self.init(
            loop: loop, session: session, connectTimeout: configuration.connectTimeout, servers: configuration.servers,
            impairment: configuration.impairment, pathTimeout: configuration.pathTimeout
        ) { servers, events, datagrams throws(TransportError) in
            if let port = configuration.port {
                return PortPath(port: port.value, scope: configuration.scope, events: events, datagrams: datagrams)
            }
            return try ICEAgent(
                loop: loop, role: configuration.iceRole, scope: configuration.scope, ports: configuration.ports,
                servers: servers, relayTimeout: configuration.relayTimeout, events: events,
                datagrams: datagrams)
        }
    }
}
