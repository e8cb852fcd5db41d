package import PeerSession
package import RTP

/// What a `Peer` is made with.
package struct PeerConfiguration: Sendable {
    package var iceRole: ICERole
    package var certificate: Certificate
    /// Canonical name in RTCP (RFC 7022).
    package var cname: String
    package var scope: ListeningScope
    /// UDP ports to listen on; nil leaves the choice to the system.
    package var ports: ClosedRange<UInt16>?
    package var impairment: Impairment?
    /// The longest RTP packet that is sent, in bytes, without the MID extension.
    package var maximumPacketLength = PeerSessionConfiguration.standardPacketLength
    /// From `setRemote` to the end of the DTLS handshake; then the peer fails with `transport.connect-timeout`.
    package var connectTimeout = TimeInterval.seconds(15)
    /// Time without an authenticated packet after which `.disconnected` is reported.
    package var silence = TimeInterval.seconds(5)
    /// Time for which media may go unanswered: then the peer fails with `transport.connection-lost` (RFC 7675
    /// section 5.1). A peer that is sent none fails after 50 s without an answer to ICE's checks.
    package var consent = TimeInterval.seconds(30)

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

/// What happens to a `Peer`, apart from media packets.
package enum PeerEvent: Sendable {
    /// One more address of ours to tell the other end, `candidate:...`.
    case localCandidate(String)
    case gatheringDone
    /// ICE has a pair of addresses; DTLS begins. Comes again when an authenticated packet arrives after `.disconnected`.
    case connected
    /// No authenticated packet has come for `PeerConfiguration.silence`. It may pass by itself. libnice does not report
    /// the STUN checks that it answers, so a browser that receives nothing and sends nothing is as silent as one that is
    /// gone.
    case disconnected
    /// DTLS is done with the right certificate: media flows from here on.
    case secured(SRTPProfile)
    /// The other end asks for a keyframe.
    case keyframeRequested(SenderID)
    /// So much of a stream is missing that only a keyframe mends it.
    case lossBeyondRepair(ReceiverID)
    /// SRTP refuses every packet of a stream; comes once until a packet is good again.
    case mediaRefused(ReceiverID, packets: Int)
    /// So many packets failed authentication since the beginning; at most once a second.
    case unauthenticated(packets: Int)
    /// On the sender's wall clock it was `ntp` when its stream was at `rtp`; the report came in at `at`.
    case senderReport(ReceiverID, ntp: NTPTime, rtp: RTPTimestamp, at: MonotonicTime)
    /// The other end ended one stream.
    case bye(ReceiverID)
    case roundTrip(TimeInterval)
    /// The other end closed. Nothing follows; `close()` the peer.
    case closed
    /// The peer cannot go on. Nothing follows; `close()` it.
    case failed(TransportError)
}

/// Counters of a `Peer` since it was made.
package struct PeerStatistics: Sendable {
    package var session: PeerSessionStatistics
    /// Datagrams apart from STUN.
    package var datagramsSent = 0
    package var datagramsReceived = 0
    /// Outgoing datagrams that the socket did not take.
    package var datagramsRefused = 0
    /// Incoming datagrams too long to be a packet.
    package var datagramsTooLong = 0
    /// Lost by `Impairment`, both directions.
    package var datagramsImpaired = 0
    /// Remote candidates that were not tried: malformed, TCP, mDNS, impossible, or over the limit.
    package var candidatesIgnored = 0
}
