internal import RTP
internal import RoomProtocol

/// Limits how many streams a participant publishes over time, because each is announced to everyone in the room.
struct PublishPace {
    /// As many at once as four times the streams of a participant.
    static let burst = 64
    private static let interval = TimeInterval.milliseconds(500)

    /// When all of the burst is available again.
    private var full: MonotonicTime

    init(now: MonotonicTime) { full = now }

    /// Counts these streams. Throws, and counts none, if they are too many.
    mutating func admit(_ streams: Int, now: MonotonicTime) throws(RoomError) {
        let later = max(full, now) + Self.interval * Int64(streams)
        guard later <= now + Self.interval * Int64(Self.burst) else {
            throw RoomError(
                .tooManyRequests,
                "The client publishes too many streams. Publish at most \(Self.burst) at once, then 2 a second.")
        }
        full = later
    }
}
