import MediaAuthoring

/// The rule of the queue downstream of a capturer of encoded video: it passes frames from a keyframe on, drops to the
/// next one when it is full, and requests it.
struct KeyframeGate {
    /// Shortest interval between requests.
    private static let askInterval = 0.1

    private var needsKeyframe = true
    private var askedAt: MediaTime?
    private var isAsked = false

    /// Whether to accept an arriving frame.
    mutating func takes(isKeyframe: Bool, isFull: Bool, at now: MediaTime) -> Bool {
        if isFull { needsKeyframe = true } else if isKeyframe { needsKeyframe = false }
        if needsKeyframe, askedAt.map({ now.seconds(since: $0) >= Self.askInterval }) ?? true {
            askedAt = now
            isAsked = true
        }
        return !needsKeyframe
    }

    /// Whether it has requested a keyframe since the last call.
    mutating func takeRequest() -> Bool {
        defer { isAsked = false }
        return isAsked
    }
}

/// Measures the wait for keyframes that were requested after a drop.
struct KeyframeWait {
    /// A keyframe has to arrive within this many seconds, or a few frames, because consumers show nothing until then.
    let limit: Double
    /// The longest completed wait.
    private var longest = 0.0
    /// The beginning of the present wait. Nil without one.
    private(set) var since: MediaTime?

    init(_ units: [MediaUnit]) {
        limit = max(2.5, 4.5 / max(units.first?.format.framesPerSecond ?? 30, 0.01))
        for unit in units {
            guard let isKeyframe = unit.isKeyframe else { continue }
            if isKeyframe {
                longest = max(longest, since.map { unit.arrival.seconds(since: $0) } ?? 0)
                since = nil
            } else if !unit.isTaken, since == nil {
                since = unit.arrival
            }
        }
    }

    /// Whether a wait is or was too long.
    func isTooLong(at now: MediaTime) -> Bool {
        max(longest, since.map { now.seconds(since: $0) } ?? 0) > limit
    }
}
