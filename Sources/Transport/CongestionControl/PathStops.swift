internal import RTP

/// Whether a path stops again and again, as a radio that sleeps or that serves others in turn. Its queue is empty after each
/// stop. A probe between two of them measures the rate of a moment, and the path carries less.
struct PathStops: Sendable {
    static let needed = 3
    /// From one empty queue to the next.
    static let longest = TimeInterval.milliseconds(250)
    /// The last stop is known for so long.
    static let memory = TimeInterval.seconds(1)
    static let shortestQueue = TimeInterval.milliseconds(30)

    private var count = 0
    private var newest: MonotonicTime?
    private var lastEmpty: MonotonicTime?
    private var hasQueue = false

    var areKnown: Bool { count >= Self.needed }

    /// The queue at a feedback.
    mutating func add(_ queue: TimeInterval, now: MonotonicTime) {
        if queue < DelayBasedEstimate.harmlessQueue {
            if hasQueue, let lastEmpty {
                let isStop = now - lastEmpty <= Self.longest
                count = isStop ? min(count + 1, Self.needed) : 0
                if isStop { newest = now }
            }
            (hasQueue, lastEmpty) = (false, now)
        } else if queue >= Self.shortestQueue {
            hasQueue = true
        }
        if let newest, now - newest > Self.memory { count = 0 }
    }
}
