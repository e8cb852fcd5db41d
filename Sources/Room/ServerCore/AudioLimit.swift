internal import RTP
internal import RoomProtocol

/// Limits what a publisher sends as one audio stream. A pacer never holds audio, and links give it what it needs before video, so more
/// than an encoder makes would take the room's links from everyone.
struct AudioLimit {
    /// Opus makes 510 kbit/s at most (RFC 6716, section 2.1.1). Packets of 2.5 ms are 400 a second, each with up to 59 bytes of
    /// headers. The copies of RED are gone by then.
    static let bitsPerSecond = 700_000
    static let packetsPerSecond = 500
    /// A network that stood still delivers so much at once.
    static let seconds = 2

    private var packets = Pace(
        burst: packetsPerSecond * seconds, interval: TimeInterval(nanoseconds: 1_000_000_000 / Int64(packetsPerSecond)))
    private var bytes = Pace(
        burst: bitsPerSecond / 8 * seconds,
        interval: TimeInterval(nanoseconds: 8_000_000_000 / Int64(bitsPerSecond)))
    /// How many packets were left out.
    private(set) var count = 0

    /// Whether a packet may be forwarded. Leaves out those beyond the limit.
    ///
    /// - Parameter length: of the whole packet, in bytes
    mutating func admits(_ length: Int, now: MonotonicTime) -> Bool {
        guard packets.delay(now: now) == nil, bytes.admits(length, now: now) else {
            count += 1
            return false
        }
        packets.count(now: now)
        return true
    }

    /// The error for the publisher at the first packet that is left out. Nil for every other packet.
    func problem(of mid: String) -> RoomError? {
        guard count == 1 else { return nil }
        return RoomError(
            .audioTooFast,
            "The m-line '\(mid.prefix(32))' sends more audio than is forwarded. Send at most "
                + "\(Self.bitsPerSecond / 1000) kbit/s and \(Self.packetsPerSecond) packets a second.")
    }
}
