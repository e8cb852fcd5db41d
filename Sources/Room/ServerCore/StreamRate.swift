internal import CongestionControl
internal import RTP

/// The rate of a stream on the path, in bits per second, over the last half second or more.
struct StreamRate {
    private static let window = TimeInterval.milliseconds(500)
    /// Without packets for this long, the rate is 0.
    private static let silence = TimeInterval.seconds(2)

    private var since: MonotonicTime?
    private var bytes = 0
    /// Those that have ended since the stream began, or went on.
    private var windows = 0
    private var rate = 0.0
    /// When the last packet came. `.zero` before the first.
    private(set) var newest = MonotonicTime.zero

    /// - Parameter length: of an RTP packet
    @inline(__always)
    mutating func add(_ length: Int, now: MonotonicTime) {
        // A pause says nothing about the stream as it flows.
        if now - newest > Self.silence { (since, windows) = (nil, 0) }
        newest = now
        guard let since else {
            self.since = now
            bytes = length + PathRate.packetOverhead
            return
        }
        let elapsed = now - since
        if elapsed >= Self.window { end(after: elapsed, now) }
        bytes += length + PathRate.packetOverhead
    }

    private mutating func end(after elapsed: TimeInterval, _ now: MonotonicTime) {
        let latest = Double(bytes) * 8 / elapsed.seconds
        windows += 1
        // The first one has a keyframe, which says little about the rest.
        switch windows {
        case 1: rate = rate == 0 ? latest : rate
        case 2: rate = latest
        default: rate = (rate + latest) / 2
        }
        since = now
        bytes = 0
    }

    /// The last rate that was measured, however long ago. Nil before the first half second.
    var latest: Double? { rate > 0 ? rate : nil }

    /// 0 for a stream that is silent. Nil before the first half second.
    func current(now: MonotonicTime) -> Double? { latest.map { now - newest > Self.silence ? 0 : $0 } }
}
