internal import RTP

/// Spaces the keyframe requests to the publisher of one stream. The first goes at once, and later ones a second apart.
/// Requests that come meanwhile are one request. It is told the time.
struct KeyframeGovernor {
    enum Verdict: Equatable {
        case askNow
        /// Ask at this time, unless a keyframe comes before.
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

    /// The time of a pending request has come. False when a keyframe has answered it.
    mutating func timeout(now: MonotonicTime) -> Bool {
        guard isPending else { return false }
        isPending = false
        earliest = now + Self.interval
        return true
    }

    /// A keyframe begins: whoever waited for one has it.
    mutating func keyframeBegan() { isPending = false }
}
