internal import RTP
internal import RoomProtocol

/// Limits how many streams a participant publishes over time, because each is announced to everyone in the room.
struct PublishPace {
    /// As many at once as four times the streams of a participant.
    static let burst = 64

    private var pace = Pace(burst: burst, interval: .milliseconds(500))

    /// Counts these streams. Throws, and counts none, if they are too many.
    mutating func admit(_ streams: Int, now: MonotonicTime) throws(RoomError) {
        guard pace.admits(streams, now: now) else {
            throw RoomError(
                .tooManyRequests,
                "The client publishes too many streams. Publish at most \(Self.burst) at once, then 2 a second.")
        }
    }
}

/// Limits how often a stream changes its state and attributes, because each change is announced to everyone in the room.
struct ChangePace {
    static let burst = 10

    private var pace = Pace(burst: burst, interval: .seconds(1))

    /// Counts a change. Throws if it comes too soon.
    mutating func admit(now: MonotonicTime) throws(RoomError) {
        guard pace.admits(now: now) else {
            throw RoomError(
                .tooManyRequests,
                "The stream changes too often. Change it at most \(Self.burst) times at once, then once a second."
            )
        }
    }
}

/// Limits how often a session restarts ICE, because each restart is a description and, with full ICE, opens sockets.
struct RestartPace {
    static let burst = 10

    private var pace = Pace(burst: burst, interval: .seconds(2))

    /// Counts a restart. Throws if it comes too soon.
    mutating func admit(now: MonotonicTime) throws(RoomError) {
        guard pace.admits(now: now) else {
            throw RoomError(
                .tooManyRequests,
                "The client restarts ICE too often. Restart it at most \(Self.burst) times at once, then every 2 s.")
        }
    }
}
