package import PeerSession
package import RTP

/// Events of a `Peer` other than media packets.
package enum PeerEvent: Sendable {
    /// Another local address to send to the other end, `candidate:...`.
    case localCandidate(String)
    case gatheringDone
    /// ICE selected a pair of addresses, and DTLS begins. Also reported for an authenticated packet after
    /// `.disconnected`.
    case connected
    /// Packets take another way to the other end, after an ICE restart or because its address changed.
    case rerouted
    /// No authenticated packet arrived for `PeerSessionConfiguration.silence`. The connection may recover. libnice does not
    /// report the STUN checks that it replies to, so a browser that neither receives nor sends looks like a vanished
    /// one.
    case disconnected
    /// The other end no longer consents to the path, which carries nothing until an ICE restart finds another one. Without that,
    /// `.failed` follows after the peer's `pathTimeout`.
    case pathLost
    /// DTLS finished with the right certificate. Media can flow.
    case secured(SRTPProfile)
    /// The other end requests a keyframe.
    case keyframeRequested(SenderID)
    /// A stream lost more than retransmission can repair. Only a keyframe helps.
    case lossBeyondRepair(ReceiverID)
    /// SRTP refuses every packet of a stream. Reported once until a packet is valid again.
    case mediaRefused(ReceiverID, packets: Int)
    /// The number of packets that failed authentication so far. At most once per second.
    case unauthenticated(packets: Int)
    case senderReport(ReceiverID, SenderReport)
    /// The other end ended one stream.
    case bye(ReceiverID)
    case roundTrip(TimeInterval)
    /// How fast all streams together should send from now on. See `PeerSessionEvent.sendingRate`.
    case sendingRate(bitsPerSecond: Int)
    /// The other end closed. The last event; call `close()`.
    case closed
    /// The peer failed. The last event; call `close()`.
    case failed(TransportError)
}

/// Counters of a `Peer` since its creation.
package struct PeerStatistics: Sendable {
    package var session: PeerSessionStatistics
    /// Datagrams other than STUN.
    package var datagramsSent = 0
    package var datagramsReceived = 0
    /// Bytes of the datagrams that were sent, or that the socket refused.
    package var bytesSent = 0
    /// Bytes of the received ones.
    package var bytesReceived = 0
    /// How often the addresses in use have been chosen or have changed.
    package var routes = 0
    /// Outgoing datagrams that the socket refused.
    package var datagramsRefused = 0
    /// Incoming datagrams that are too long.
    package var datagramsTooLong = 0
    /// Datagrams lost by `Impairment`, in both directions.
    package var datagramsImpaired = 0
    /// Remote candidates that were not tried: malformed, TCP, mDNS, impossible, or beyond the limit.
    package var candidatesIgnored = 0
}
