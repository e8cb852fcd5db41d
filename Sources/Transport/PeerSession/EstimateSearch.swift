import RTP

/// When to fill a path with padding whose receiver estimates by what arrives (REMB): its estimate grows to little more than
/// that. So padding goes on for as long as the estimate rises, and begins again after a rest.
struct EstimateSearch {
    /// Without a higher estimate for so long, the path carries no more. Neither does it if an estimate is below this share of the
    /// one before.
    static let patience = TimeInterval.seconds(5)
    static let fall = 0.97
    static let rest = TimeInterval.seconds(30)
    /// A peer makes no estimate while it gets nothing. So after this, padding begins in a rest, too.
    static let silence = TimeInterval.seconds(3)

    /// Whether the estimate is below the demand.
    private(set) var isWanting = false
    private(set) var isPadding = false
    private var heard = MonotonicTime.zero
    private var newest = 0.0
    private var best = 0.0
    private var rose: MonotonicTime?
    private var restsUntil = MonotonicTime.zero

    /// - Parameters:
    ///   - estimate: the newest one in bits per second
    ///   - demand: what the streams can use
    mutating func heard(_ estimate: Double, demand: Double, now: MonotonicTime) {
        let before = newest
        (heard, newest) = (now, estimate)
        (isPadding, isWanting) = (false, estimate < demand)
        guard isWanting else { return rose = nil }
        guard now >= restsUntil else { return }
        let hasFallen = rose != nil && estimate < before * Self.fall
        if rose == nil || estimate > best { (best, rose) = (estimate, now) }
        guard !hasFallen, let rose, now - rose < Self.patience else {
            (self.rose, restsUntil) = (nil, now + Self.rest)
            return
        }
        isPadding = true
    }

    /// Whether to send padding now.
    func allowsPadding(now: MonotonicTime) -> Bool { isPadding || isWanting && now - heard >= Self.silence }
}

/// The newest estimates of a peer that makes one for each of its streams, as aiortc does. The path carries all of them together.
struct ReceiverEstimates {
    /// An older one is of a stream that no longer arrives.
    static let lifetime = TimeInterval.seconds(5)
    static let capacity = 64

    private var newest: [(estimate: ReceiverEstimate, at: MonotonicTime)] = []

    /// An estimate is about payloads; headers and tags need this much more.
    static let headers = 1.05

    /// Adds an estimate, which replaces those about any of its streams. Returns that of all streams.
    mutating func joined(_ estimate: ReceiverEstimate, now: MonotonicTime) -> ReceiverEstimate {
        newest.removeAll { one in
            now - one.at > Self.lifetime || one.estimate.sources.isEmpty || estimate.sources.isEmpty
                || one.estimate.sources.contains { estimate.sources.contains($0) }
        }
        if newest.count == Self.capacity { newest.removeFirst() }
        newest.append((estimate, now))
        var whole = estimate
        whole.bitsPerSecond = newest.reduce(0) { sum, one in
            let (total, overflows) = sum.addingReportingOverflow(one.estimate.bitsPerSecond)
            return overflows ? .max : total
        }
        return whole
    }
}
