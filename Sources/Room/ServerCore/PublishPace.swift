internal import RTP
internal import RoomProtocol

/// Admits a burst, and then one per interval. It is told the time.
private struct BurstRate {
    let burst: Int
    let interval: TimeInterval
    /// When all of the burst is available again.
    private var full = MonotonicTime.zero

    init(burst: Int, interval: TimeInterval) {
        self.burst = burst
        self.interval = interval
    }

    /// Counts these, or counts none and returns false if they are too many.
    mutating func admits(_ count: Int, now: MonotonicTime) -> Bool {
        let later = max(full, now) + interval * Int64(count)
        guard later <= now + interval * Int64(burst) else { return false }
        full = later
        return true
    }
}

/// Limits how many streams a participant publishes over time, because each is announced to everyone in the room.
struct PublishPace {
    /// As many at once as four times the streams of a participant.
    static let burst = 64

    private var rate = BurstRate(burst: burst, interval: .milliseconds(500))

    /// Counts these streams. Throws, and counts none, if they are too many.
    mutating func admit(_ streams: Int, now: MonotonicTime) throws(RoomError) {
        guard rate.admits(streams, now: now) else {
            throw RoomError(
                .tooManyRequests,
                "The client publishes too many streams. Publish at most \(Self.burst) at once, then 2 a second.")
        }
    }
}

/// Limits how often a stream changes its state, because each change is announced to everyone in the room.
struct StatePace {
    static let burst = 10

    private var rate = BurstRate(burst: burst, interval: .seconds(1))

    /// Counts a change. Throws if it comes too soon.
    mutating func admit(now: MonotonicTime) throws(RoomError) {
        guard rate.admits(1, now: now) else {
            throw RoomError(
                .tooManyRequests,
                "The stream changes its state too often. Change it at most \(Self.burst) times at once, then once a second."
            )
        }
    }
}
