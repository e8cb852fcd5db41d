package import RTP

/// Limits how many messages a participant sends to others, and how many bytes of JSON in them, because each goes to everyone
/// in the room. Both ends keep it. It is told the time.
package struct MessagePace: Sendable {
    package static let burst = 20
    /// In KiB.
    package static let bytesBurst = 64

    private var messages = Pace(burst: burst, interval: .milliseconds(100))
    private var bytes = Pace(burst: bytesBurst, interval: .microseconds(62_500))

    package init() {}

    /// How long the message would have to wait. Nil when it may be sent now.
    package func delay(_ message: SendMessage, now: MonotonicTime) -> TimeInterval? {
        let delays = [messages.delay(now: now), bytes.delay(Self.size(message), now: now)]
        return delays.compactMap { $0 }.max()
    }

    package mutating func count(_ message: SendMessage, now: MonotonicTime) {
        messages.count(now: now)
        bytes.count(Self.size(message), now: now)
    }

    /// Counts a message. Throws, and counts nothing, if it comes too soon.
    package mutating func admit(_ message: SendMessage, now: MonotonicTime) throws(RoomError) {
        guard delay(message, now: now) == nil else {
            throw RoomError(
                .tooManyRequests,
                "The client sends messages too often. Send at most \(Self.burst) with \(Self.bytesBurst) KiB at once, then 10 "
                    + "with 16 KiB a second.")
        }
        count(message, now: now)
    }

    /// In KiB, at least 1.
    private static func size(_ message: SendMessage) -> Int { max(1, (message.length + 1023) / 1024) }
}
