internal import RTP

/// Limits keyframe requests to one stream's publisher. The first is sent immediately, later ones a second apart.
/// Requests in between are combined. It is told the time.
struct KeyframeGovernor {
    enum Verdict: Equatable {
        case askNow
        /// Request at this time, unless a keyframe arrives before.
        case askAt(MonotonicTime)
        /// A request is due already.
        case wait
    }

    static let interval = TimeInterval.seconds(1)

    private var earliest = MonotonicTime.zero
    private var isPending = false

    mutating func request(now: MonotonicTime) -> Verdict {
        if isPending { return .wait }
        guard now < earliest else {
            earliest = now + Self.interval
            return .askNow
        }
        isPending = true
        return .askAt(earliest)
    }

    /// The time of a pending request has come. Returns false if a keyframe arrived since.
    mutating func timeout(now: MonotonicTime) -> Bool {
        guard isPending else { return false }
        isPending = false
        earliest = now + Self.interval
        return true
    }

    /// A keyframe begins, which answers all pending requests.
    mutating func keyframeBegan() { isPending = false }
}
