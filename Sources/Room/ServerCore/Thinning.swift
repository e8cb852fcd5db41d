internal import CongestionControl
internal import RTP

/// Keeps one subscriber's video within its share of the link: leaves frames out, up to a keyframe for which there is room.
struct Thinning {
    /// A keyframe is larger for everyone, so that a subscriber which shares a stream with others waits for this long.
    private static let pause = TimeInterval.seconds(2)

    private let isAlone: Bool
    private var queue = ShareQueue()
    /// The timestamp of the newest frame.
    private var frame: RTPTimestamp?
    private var pausedAt: MonotonicTime?

    /// - Parameter isAlone: whether nobody else receives the stream
    init(isAlone: Bool) { self.isAlone = isAlone }

    /// - Parameter bitsPerSecond: the share as a rate of the path
    mutating func setShare(_ bitsPerSecond: Double, now: MonotonicTime) { queue.setShare(bitsPerSecond, now: now) }

    /// Whether the frames before the next keyframe are left out.
    var isPausing: Bool { pausedAt != nil }

    /// Whether the packet begins a frame for which there is no room. From then on, frames are left out.
    mutating func pauses(before timestamp: RTPTimestamp, isNewest: Bool, now: MonotonicTime) -> Bool {
        guard isNewest, timestamp != frame else { return false }
        frame = timestamp
        guard let wait = queue.wait(now: now), wait > ShareQueue.longest else { return false }
        pausedAt = now
        return true
    }

    /// Whether there is room for a keyframe. The pause ends.
    mutating func resumes(now: MonotonicTime) -> Bool {
        guard let pausedAt else { return true }
        guard isAlone || now - pausedAt >= Self.pause, queue.wait(now: now) ?? .zero <= ShareQueue.resumption else {
            return false
        }
        self.pausedAt = nil
        return true
    }

    /// - Parameter bytes: of a packet that is sent, with all headers
    mutating func sent(bytes: Int) { queue.add(bytes: bytes) }
}
