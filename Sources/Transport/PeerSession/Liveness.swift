import RTP

/// Whether the peer is still reachable, judged by authenticated packets.
///
/// Addresses can be forged, so unauthenticated bytes prove nothing. A peer that receives nothing may send nothing, so
/// its silence is reported without consequence. A peer that receives media reports on it every few seconds (RFC 3550,
/// section 6.2). It must therefore respond within `consent` (RFC 7675, section 5.1).
struct Liveness {
    enum Change: Equatable {
        /// No packet arrived for `silence`.
        case silent
        /// The peer did not respond to media for `consent`.
        case lost
        /// The peer said that it closes, and has been silent since.
        case closed
    }

    let silence: TimeInterval
    let consent: TimeInterval
    /// When the last authenticated packet arrived. `.zero` before the first.
    private(set) var lastReceived = MonotonicTime.zero
    private(set) var isSilent = false
    private var isStarted = false
    /// When the first media since `lastReceived` was sent.
    private var unansweredSince: MonotonicTime?
    /// When a peer that may have closed counts as closed.
    private var closes = MonotonicTime.never
    /// A peer that runs sends a report within 7.75 s. Two of them may be lost.
    static let doubt = TimeInterval.seconds(20)

    init(silence: TimeInterval, consent: TimeInterval) {
        self.silence = silence
        self.consent = consent
    }

    /// The peer is authenticated. Its silence counts from now on.
    mutating func start(now: MonotonicTime) {
        isStarted = true
        lastReceived = now
    }

    /// An authenticated packet arrived. Returns true if it ends a silence.
    mutating func received(now: MonotonicTime) -> Bool {
        lastReceived = now
        unansweredSince = nil
        closes = .never
        guard isSilent else { return false }
        isSilent = false
        return true
    }

    /// A datagram that anybody can forge says that the peer closes.
    mutating func mayHaveClosed(now: MonotonicTime) { closes = min(closes, now + Self.doubt) }

    mutating func sent(now: MonotonicTime) {
        if unansweredSince == nil { unansweredSince = now }
    }

    /// The peer shows elsewhere that it is there, and looks for another path: it has as long as before to respond.
    mutating func extendConsent(now: MonotonicTime) {
        if unansweredSince != nil { unansweredSince = now }
    }

    /// No media is sent any longer. The peer may have stopped its reports before the last packets arrived.
    mutating func stoppedSending() { unansweredSince = nil }

    /// When to call `handleTimeout`. `.never` for a silent peer without outgoing media.
    var nextTimeout: MonotonicTime {
        guard isStarted else { return .never }
        let loss = min(unansweredSince.map { $0 + consent } ?? .never, closes)
        return isSilent ? loss : min(lastReceived + silence, loss)
    }

    mutating func handleTimeout(now: MonotonicTime) -> Change? {
        guard nextTimeout <= now else { return nil }
        if closes <= now {
            isStarted = false
            return .closed
        }
        if let since = unansweredSince, since + consent <= now {
            isStarted = false
            return .lost
        }
        isSilent = true
        return .silent
    }
}
