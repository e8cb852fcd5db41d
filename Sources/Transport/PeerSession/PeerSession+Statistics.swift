import RTP

extension PeerSession {
    public var statistics: PeerSessionStatistics {
        PeerSessionStatistics(roundTrip: streams.roundTrip, dropped: streams.dropped, sending: control?.statistics)
    }

    /// Packets to be sent that were dropped, `outgoingFull` and `unprotectable`.
    package var dropsOfSending: (full: Int, unprotectable: Int) {
        (streams.dropped.outgoingFull, streams.dropped.unprotectable)
    }

    /// Nil after the sender's removal.
    public func statistics(of id: SenderID) -> SenderStatistics? { streams.sender(id)?.statistics }

    /// Nil after the receiver's removal.
    public func statistics(of id: ReceiverID) -> ReceiverStatistics? { streams.receiver(id)?.statistics }

    /// The state of the handshake, and of the session that it has begun.
    package var dtlsState: DTLSState {
        switch phase {
        case .idle: .new
        case .handshaking: .connecting
        case .secured: .connected
        case .ended: lastReceived > .zero ? .closed : .failed
        }
    }
}

/// As RTCDtlsTransportState (W3C WebRTC, section 5.5.1).
package enum DTLSState: String, Sendable {
    case new, connecting, connected, closed, failed
}
