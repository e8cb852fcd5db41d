internal import CongestionControl
internal import RTP

/// Keeps one subscriber's video within its share of the link: leaves frames out, up to a keyframe for which there is room.
struct Thinning {
    /// Keyframes cost everyone bits. So subscribers that share a stream go on together, at these times.
    private static let interval = 2_000_000_000 as UInt64
    /// How long they may do so.
    private static let opening = 300_000_000 as UInt64

    private var queue = ShareQueue()
    /// The timestamp of the newest frame.
    private var frame: RTPTimestamp?
    /// Whether the frames before the next keyframe are left out.
    private(set) var isPausing = false

    /// - Parameter bitsPerSecond: the share as a rate of the path
    mutating func setShare(_ bitsPerSecond: Double, now: MonotonicTime) { queue.setShare(bitsPerSecond, now: now) }

    /// Whether the packet begins a frame for which there is no room. From then on, frames are left out.
    mutating func pauses(before timestamp: RTPTimestamp, isNewest: Bool, now: MonotonicTime) -> Bool {
        guard isNewest, timestamp != frame else { return false }
        frame = timestamp
        guard let wait = queue.wait(now: now), wait > ShareQueue.longest else { return false }
        isPausing = true
        return true
    }

    /// Whether there is room for a keyframe. The pause ends.
    ///
    /// - Parameter isAlone: whether nobody else receives the stream
    mutating func resumes(isAlone: Bool, now: MonotonicTime) -> Bool {
        guard isPausing else { return true }
        guard isAlone || now.nanoseconds % Self.interval < Self.opening,
            queue.wait(now: now) ?? .zero <= ShareQueue.resumption
        else { return false }
        isPausing = false
        return true
    }

    /// - Parameter bytes: of a packet that is sent, with all headers
    mutating func sent(bytes: Int) { queue.add(bytes: bytes) }
}
