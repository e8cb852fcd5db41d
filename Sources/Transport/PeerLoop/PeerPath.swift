package import RTP

/// How a peer's datagrams reach the other end: by an ICE agent with sockets of its own, by the port of a server, or by a
/// simulated network. On the peer's loop only.
///
/// Its events and datagrams arrive through the closures that the peer passes to its maker.
package protocol PeerPath: AnyObject {
    /// The ICE credentials of this end (RFC 8839, section 5.4).
    var ufrag: String { get }
    var password: String { get }
    /// Whether this end is lite, so that the other end controls ICE (RFC 8445, section 2.5).
    var isLite: Bool { get }
    /// Remote candidates that were not tried.
    var ignoredCandidates: Int { get }
    /// How long the other end may not respond to checks, or send none, until `.failed`.
    var consent: TimeInterval { get }
    /// The local and the remote address in use, as `address:port`.
    var selectedPair: (local: String, remote: String)? { get }
    /// How datagrams travel. Nil before there is a pair.
    var route: MediaRoute? { get }
    /// Why a TURN server cannot be used, as far as it is known.
    var relayProblem: TransportError? { get }
    /// Whether a TURN server relays for this end.
    var hasRelay: Bool { get }

    /// Opens the sockets. The candidates follow as events.
    func gather() throws(TransportError)
    /// Sets the other end's credentials. Returns false if they cannot be used.
    func setRemote(ufrag: String, password: String) -> Bool
    /// Tries another address of the other end, `candidate:...`.
    func addRemoteCandidate(_ attribute: String)
    func remoteCandidatesEnded()
    /// Sends the datagrams that `fill` appends to a batch, which it calls once. Returns how many the path accepted and
    /// refused.
    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int)
    /// Begins an ICE restart with new credentials (RFC 8445, section 9). Returns false if another path has to take its place.
    func restart() -> Bool
    /// Must not be called inside of the closures of its maker.
    func close()
}

extension PeerPath {
    package var ignoredCandidates: Int { 0 }
    package var route: MediaRoute? { selectedPair == nil ? nil : MediaRoute(local: .host, remote: .host) }
    package var relayProblem: TransportError? { nil }
    package var hasRelay: Bool { false }
    package func restart() -> Bool { false }
    /// A lite end sends no checks, so it needs no candidates.
    package func addRemoteCandidate(_ attribute: String) {}
    package func remoteCandidatesEnded() {}
}

/// Events of a path.
package enum ICEEvent: Sendable {
    case localCandidate(String)
    case gatheringDone
    case connected
    case failed
    /// The path can never connect, for this reason.
    case impossible(TransportError)
}

/// Which end selects the pair of addresses (RFC 8445, section 6.1.1). The controlling end made the offer, or talks to an
/// end that is lite.
package enum ICERole: Sendable {
    case controlling
    case controlled
}
