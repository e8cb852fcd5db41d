package import RTP

/// The queue that a stream would have before a link that carries just its share: what is sent beyond the share waits.
package struct ShareQueue: Sendable {
    /// Frames are sent while the queue is shorter.
    package static let longest = TimeInterval.milliseconds(500)
    /// After that, they are sent again once it is shorter than this.
    package static let resumption = TimeInterval.milliseconds(100)
    /// A share that is not renewed ends.
    package static let lifetime = TimeInterval.seconds(3)
    private static let leastRate = 1000.0

    private var share: (rate: Double, at: MonotonicTime)?
    private var bytes = 0.0
    private var drained: MonotonicTime?

    package init() {}

    /// - Parameter bitsPerSecond: the share as a rate of the path. Nil: nothing limits the stream any longer.
    package mutating func setShare(_ bitsPerSecond: Double?, now: MonotonicTime) {
        drain(now)
        share = bitsPerSecond.map { (max(Self.leastRate, $0), now) }
    }

    /// - Parameter bytes: of sent packets with all headers
    package mutating func add(bytes: Int) { self.bytes += Double(bytes) }

    /// How long a packet would wait that is sent now. Nil without a share.
    package mutating func wait(now: MonotonicTime) -> TimeInterval? {
        guard let share, now - share.at < Self.lifetime else {
            bytes = 0
            return nil
        }
        drain(now)
        return time(for: bytes, at: share.rate)
    }

    /// How long so many bytes take. Zero without a share.
    package func time(for bytes: Int) -> TimeInterval {
        share.map { time(for: Double(bytes), at: $0.rate) } ?? .zero
    }

    private func time(for bytes: Double, at rate: Double) -> TimeInterval {
        .microseconds(Int64(min(bytes * 8 / rate, 1e6) * 1e6))
    }

    private mutating func drain(_ now: MonotonicTime) {
        if let share, let drained { bytes = max(0, bytes - share.rate / 8 * max(.zero, now - drained).seconds) }
        drained = max(now, drained ?? now)
    }
}
