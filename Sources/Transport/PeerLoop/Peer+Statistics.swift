package import PeerSession
package import RTP

extension Peer {
    package var statistics: PeerStatistics {
        var result = counters
        result.session = session.statistics
        result.candidatesIgnored = path?.ignoredCandidates ?? counters.candidatesIgnored
        return result
    }

    /// See `PeerSession.memory`.
    package var memory: PacketMemory { session.memory }

    /// When the last authenticated packet arrived. `.zero` before the end of the handshake.
    package var lastReceived: MonotonicTime { session.lastReceived }
    /// See `PeerSession.lastAnswered`.
    package var lastAnswered: MonotonicTime { session.lastAnswered }

    /// When the other end last reported which packets arrived. Nil before it does, and if it never does.
    package var lastReport: MonotonicTime? { session.lastReport }

    /// Counters of one stream. Nil after its removal.
    package func statistics(of sender: SenderID) -> SenderStatistics? { session.statistics(of: sender) }

    package func statistics(of receiver: ReceiverID) -> ReceiverStatistics? { session.statistics(of: receiver) }

    /// Whether media can flow: from `.secured` to the end.
    package var isSecured: Bool { session.isSecured }

    /// The addresses in use, such as `127.0.0.1:40000`. Nil before `.connected`.
    package var selectedPair: (local: String, remote: String)? {
        loop.preconditionOnLoop()
        return path?.selectedPair
    }

    /// How media travels, or how it did before the path was lost: libnice forgets its pair when the TCP connection to a TURN
    /// server ends. Nil before `.connected`.
    package var route: MediaRoute? {
        loop.preconditionOnLoop()
        return path?.route ?? lastRoute
    }

    /// The ICE username fragment of this end (RFC 8839, section 5.4). Changes with an ICE restart.
    package var usernameFragment: String { path?.ufrag ?? description.iceUfrag }

    /// The state of the path to the other end, as far as this end knows it.
    package var iceState: ICEState {
        switch state {
        case .closed: return .closed
        case .over where !isConnected: return .failed
        case .new, .started, .over:
            guard isConnected else { return isRemoteSet ? .checking : .new }
            return (lossTimer?.deadline ?? .never) == .never ? .connected : .disconnected
        }
    }

    /// This end's role in the handshake. Nil before the other end's description.
    package var dtlsRole: DTLSRole? { isRemoteSet ? session.role : nil }

    package var dtlsState: DTLSState {
        if state == .closed { return .closed }
        return session.dtlsState
    }
}

/// As RTCIceTransportState (W3C WebRTC, section 5.6.3).
package enum ICEState: String, Sendable {
    case new, checking, connected, disconnected, failed, closed
}
