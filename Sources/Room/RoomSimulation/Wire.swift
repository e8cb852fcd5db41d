internal import RTP

/// The state of one direction of a link.
struct Wire {
    var model: Link.Direction
    /// Whether everything is lost.
    var isCut = false
    private var random: RandomSource
    /// When the last datagram was sent, if it was lost.
    private var lastLost: MonotonicTime?
    /// A burst of losses does not outlast such a time without datagrams: it happens on the path, not to a datagram.
    private static let longestPause = TimeInterval.milliseconds(500)
    /// When the last byte that waits for the rate has left.
    private var isFreeAt = MonotonicTime.zero
    /// The most bytes that waited for the rate.
    private(set) var deepestQueue = 0
    /// Of all datagrams, lost ones included.
    private(set) var bytes = 0

    init(_ model: Link.Direction, seed: UInt64) {
        self.model = model
        random = RandomSource(seed: seed)
    }

    /// The times at which the copies of a datagram arrive: none if it is lost, two if it is doubled.
    struct Arrivals {
        var first: MonotonicTime?
        var second: MonotonicTime?
    }

    mutating func arrivals(of bytes: Int, now: MonotonicTime) -> Arrivals {
        self.bytes += bytes
        // Each datagram draws the same numbers, so that a cut does not change the fate of later ones.
        let fate = Double.random(in: 0..<1, using: &random)
        let delays = (delay(), delay())
        let doubled = Double.random(in: 0..<1, using: &random) < model.duplicates
        let isInBurst = lastLost.map { now - $0 < Self.longestPause } ?? false
        let isLost = fate < (isInBurst ? max(model.burst, model.loss) : model.loss)
        lastLost = isLost ? now : nil
        guard !isLost, !isCut, let left = departure(of: bytes, now: now) else { return Arrivals() }
        return Arrivals(first: left + delays.0, second: doubled ? left + delays.1 : nil)
    }

    private mutating func delay() -> TimeInterval {
        let jitter = max(0, model.jitter.nanoseconds)
        return model.delay + TimeInterval(nanoseconds: Int64.random(in: 0...jitter, using: &random))
    }

    private mutating func departure(of bytes: Int, now: MonotonicTime) -> MonotonicTime? {
        guard let rate = model.rate, rate > 0 else { return now }
        let start = max(now, isFreeAt)
        let waiting = Int((start - now).nanoseconds) * rate / 8_000_000_000 + bytes
        guard waiting <= model.queue else { return nil }
        deepestQueue = max(deepestQueue, waiting)
        isFreeAt = start + TimeInterval(nanoseconds: Int64(bytes) * 8 * 1_000_000_000 / Int64(rate))
        return isFreeAt
    }
}
