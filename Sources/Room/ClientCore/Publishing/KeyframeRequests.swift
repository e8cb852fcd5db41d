internal import RTP

/// Limits the rate of keyframes. A request too soon after the last keyframe is delayed; further requests join it.
struct KeyframeRequests {
    enum Verdict: Equatable {
        case now
        case at(MonotonicTime)
        case pending
    }

    /// A keyframe is about ten times as large as another frame, so a burst of them would starve the video. The server
    /// spaces its requests by more than this.
    static let spacing = TimeInterval.milliseconds(100)

    private var last: MonotonicTime?
    private var isPending = false
    private(set) var count = 0

    mutating func asked(at now: MonotonicTime) -> Verdict {
        count += 1
        if isPending { return .pending }
        guard let last, now < last + Self.spacing else {
            last = now
            return .now
        }
        isPending = true
        return .at(last + Self.spacing)
    }

    mutating func delivered(at time: MonotonicTime) {
        isPending = false
        last = time
    }
}
