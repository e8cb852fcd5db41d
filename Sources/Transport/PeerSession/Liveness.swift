import RTP

/// Whether the peer is still there, judged by the packets that it authenticated.
///
/// Anybody can forge an address, so bytes that merely come from the peer's address prove nothing. A peer that receives
/// nothing may send nothing: its silence is reported but ends nothing. A peer that is sent media reports on it every few
/// seconds (RFC 3550 section 6.2), so media may go unanswered for `consent` at most (RFC 7675 section 5.1).
struct Liveness {
    enum Change: Equatable {
        /// Nothing has come for `silence`.
        case silent
        /// Media has gone unanswered for `consent`.
        case lost
    }

    let silence: TimeInterval
    let consent: TimeInterval
    /// When the last authenticated packet came; `.zero` before the first.
    private(set) var lastReceived = MonotonicTime.zero
    private(set) var isSilent = false
    private var isStarted = false
    /// When media was first sent since `lastReceived`.
    private var unansweredSince: MonotonicTime?

    init(silence: TimeInterval, consent: TimeInterval) {
        self.silence = silence
        self.consent = consent
    }

    /// The peer has proved who it is: from now on its silence counts.
    mutating func start(now: MonotonicTime) {
        isStarted = true
        lastReceived = now
    }

    /// An authenticated packet came. True when it ends a silence.
    mutating func received(now: MonotonicTime) -> Bool {
        lastReceived = now
        unansweredSince = nil
        guard isSilent else { return false }
        isSilent = false
        return true
    }

    mutating func sent(now: MonotonicTime) {
        if unansweredSince == nil { unansweredSince = now }
    }

    /// When `handleTimeout` has something to do. A silent peer that is sent nothing wakes nobody.
    var nextTimeout: MonotonicTime {
        guard isStarted else { return .never }
        let loss = unansweredSince.map { $0 + consent } ?? .never
        return isSilent ? loss : min(lastReceived + silence, loss)
    }

    mutating func handleTimeout(now: MonotonicTime) -> Change? {
        guard nextTimeout <= now else { return nil }
        if let since = unansweredSince, since + consent <= now {
            isStarted = false
            return .lost
        }
        isSilent = true
        return .silent
    }
}
