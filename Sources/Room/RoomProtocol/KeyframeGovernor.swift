package import RTP

/// Spaces the requests for keyframes of one stream: the first passes immediately, and later ones after an interval.
/// Requests in between are combined. Takes the time as a parameter.
package struct KeyframeGovernor: Sendable {
    package enum Verdict: Equatable {
        case askNow
        /// Request at this time, unless a keyframe arrives before.
        case askAt(MonotonicTime)
        /// A request is due already.
        case wait
    }

    /// Of a server's requests to a publisher.
    package static let interval = TimeInterval.seconds(1)
    /// Of a publisher's requests to its encoder. A keyframe is about ten times as large as another frame, so a burst of them
    /// would starve the video.
    package static let encoderInterval = TimeInterval.milliseconds(100)

    private let interval: TimeInterval
    private var earliest = MonotonicTime.zero
    private var isPending = false

    package init(interval: TimeInterval = Self.interval) { self.interval = interval }

    package mutating func request(now: MonotonicTime) -> Verdict {
        if isPending { return .wait }
        guard now < earliest else {
            earliest = now + interval
            return .askNow
        }
        isPending = true
        return .askAt(earliest)
    }

    /// The time of a pending request has come. Returns false if a keyframe arrived since.
    package mutating func timeout(now: MonotonicTime) -> Bool {
        guard isPending else { return false }
        isPending = false
        earliest = now + interval
        return true
    }

    /// Those that wait for a pending request have gone.
    package mutating func withdraw() { isPending = false }

    /// Whether a request would have to wait now.
    package func isResting(now: MonotonicTime) -> Bool { now < earliest }

    /// A keyframe begins, which answers all pending requests.
    package mutating func keyframeBegan() { isPending = false }
}
