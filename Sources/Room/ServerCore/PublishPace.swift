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

/// Limits how often a participant changes the state and the attributes of its streams, because each change is announced to
/// everyone in the room.
struct ChangePace {
    static let burst = 20

    private var pace = Pace(burst: burst, interval: .milliseconds(500))

    /// Counts a change. Throws if it comes too soon.
    mutating func admit(now: MonotonicTime) throws(RoomError) {
        guard pace.admits(now: now) else {
            throw RoomError(
                .tooManyRequests,
                "The client changes its streams too often. Make at most \(Self.burst) changes at once, then 2 a second."
            )
        }
    }
}

/// Limits the messages of all participants of a room together, because each participant gets those of all others. On
/// another loop, each part of the room has a limit of its own, and counts the messages of the others.
struct RoomMessagePace {
    /// The burst and the announcements for a new participant (`Room.announcementLimit`) fit together into the server's
    /// buffer for a client that has not read yet.
    static let kibibytesBurst = 192
    static let kibibytesPerSecond = 125
    /// In bytes.
    private static let unit = 64
    /// Of a message without a text, in bytes.
    private static let overhead = 128

    private var pace = Pace(burst: kibibytesBurst * 1024 / unit, interval: .microseconds(500))

    private static func units(_ length: Int) -> Int { (length + overhead + unit - 1) / unit }

    /// Throws if a message comes too soon.
    ///
    /// - Parameter length: of its texts in JSON, in bytes.
    func check(_ length: Int, now: MonotonicTime) throws(RoomError) {
        guard pace.delay(Self.units(length), now: now) == nil else {
            throw RoomError(
                .tooManyRequests,
                "The participants of the room send too many messages together. They send at most \(Self.kibibytesBurst) KiB "
                    + "at once, then \(Self.kibibytesPerSecond) KiB a second. Try again later.")
        }
    }

    mutating func count(_ length: Int, now: MonotonicTime) { pace.count(Self.units(length), now: now) }
}
