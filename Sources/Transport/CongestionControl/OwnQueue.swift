internal import RTP

/// The queue that this end makes by itself: how long each packet would wait on a link of exactly the estimated rate. A
/// large frame makes one that the pacer cannot avoid, and the encoder makes up for it.
struct OwnQueue: Sendable {
    /// The estimate changes at most once for each feedback, and packets are on their way for a few of them.
    static let remembered = 64
    /// Frames alone wait for less, even a keyframe at the low estimates of a call's first seconds. Beyond it, the estimate is below
    /// the sent rate, or packets were lost.
    static let longest = TimeInterval.seconds(3)

    /// The estimates since the newest packet that was reported. The first one is that of its sending.
    private var estimates = Ring<(from: MonotonicTime, rate: DataRate)>(capacity: 8)
    private var bytes = 0.0
    private var newest: MonotonicTime?

    /// The estimate from now on.
    mutating func note(_ estimate: DataRate, now: MonotonicTime) {
        guard estimates.last?.rate != estimate else { return }
        if estimates.count == Self.remembered { estimates.removeFirst() }
        estimates.append((now, estimate))
    }

    /// The packets before an outage no longer wait.
    mutating func clear() { bytes = 0 }

    /// The wait of the next packet, in the order of sending, at most `longest`. Zero before the first estimate.
    mutating func add(_ packet: PacketResult) -> TimeInterval {
        while estimates.count > 1, estimates[1].from <= packet.sent { estimates.removeFirst() }
        guard let rate = estimates.first?.rate else { return .zero }
        if let newest { bytes = max(0, bytes - rate.bytes(in: max(.zero, packet.sent - newest))) }
        newest = packet.sent
        bytes = min(bytes, rate.bytes(in: Self.longest))
        defer { bytes += Double(packet.bytes) }
        return rate.time(for: bytes)
    }
}
