internal import RTP

/// When one part of a simulation was last disturbed.
struct Disturbance {
    /// Whether a fault lasts.
    var isOngoing = false
    private var end = MonotonicTime.zero

    /// A fault happened, or ended, at this time, which may lie ahead.
    mutating func note(_ time: MonotonicTime) { end = max(end, time) }

    /// The end of the last fault. `.never` while one lasts.
    var last: MonotonicTime { isOngoing ? .never : end }
}

/// The losses of one client's link, both directions, that delay a keyframe.
struct KeyframeLosses {
    private var request = MonotonicTime.zero
    private var keyframes: [UInt32: MonotonicTime] = [:]

    mutating func add(_ contents: Contents, at now: MonotonicTime) {
        switch contents {
        case .request: request = now
        case .media(let media): if media.isKeyframe, let source = media.source { keyframes[source] = now }
        case .other: break
        }
    }

    /// The last loss of a request, or of a packet of a keyframe of this source.
    func last(of source: UInt32) -> MonotonicTime { max(request, keyframes[source] ?? .zero) }
}
