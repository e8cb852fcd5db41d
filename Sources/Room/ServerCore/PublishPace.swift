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

/// Limits how many messages a participant sends to others, and how many bytes in them, because each goes to everyone in the
/// room.
struct MessagePace {
    static let burst = 20
    /// In KiB.
    static let bytesBurst = 64

    private var messages = Pace(burst: burst, interval: .milliseconds(100))
    private var bytes = Pace(burst: bytesBurst, interval: .microseconds(62_500))

    /// Counts a message. Throws, and counts nothing, if it comes too soon.
    mutating func admit(_ message: SendMessage, now: MonotonicTime) throws(RoomError) {
        let size = 1 + (message.text.utf8.count + message.kind.utf8.count) / 1024
        guard messages.delay(now: now) == nil, bytes.delay(size, now: now) == nil else {
            throw RoomError(
                .tooManyRequests,
                "The client sends messages too often. Send at most \(Self.burst) with \(Self.bytesBurst) KiB at once, then 10 "
                    + "with 16 KiB a second.")
        }
        messages.count(now: now)
        bytes.count(size, now: now)
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
