import RTP

/// When to fill a path with padding whose receiver estimates by what arrives (REMB): its estimate grows to little more than
/// that. So padding goes on for as long as the estimate rises, and begins again after a rest.
///
/// A peer makes no estimate while it gets nothing. So in a silence, a little padding asks for one now and then.
struct EstimateSearch {
    /// Without a higher estimate for so long, the path carries no more. Neither does it if an estimate is below this share of the
    /// one before.
    static let patience = TimeInterval.seconds(5)
    static let fall = 0.97
    static let rest = TimeInterval.seconds(30)
    /// Without an estimate for so long, there is a silence, in a rest, too.
    static let silence = TimeInterval.seconds(3)
    /// The first part of each `rest` of a silence has padding. Perhaps nothing answers any more.
    static let question = TimeInterval.seconds(10)

    enum Padding: Equatable {
        case none
        /// As little as lets the peer make an estimate.
        case least
        /// More than the estimate.
        case full
    }

    private var isSearching = false
    private var heard: MonotonicTime?
    private var newest = 0.0
    private var demand = 0.0
    private var best = 0.0
    private var rose: MonotonicTime?
    private var restsUntil = MonotonicTime.zero

    /// - Parameters:
    ///   - estimate: the newest one in bits per second
    ///   - demand: what the streams can use
    mutating func heard(_ estimate: Double, demand: Double, now: MonotonicTime) {
        let before = newest
        (heard, newest, self.demand) = (now, estimate, demand)
        isSearching = false
        guard isWanting else { return rose = nil }
        guard now >= restsUntil else { return }
        let hasFallen = rose != nil && estimate < before * Self.fall
        if rose == nil || estimate > best { (best, rose) = (estimate, now) }
        guard !hasFallen, let rose, now - rose < Self.patience else {
            (self.rose, restsUntil) = (nil, now + Self.rest)
            return
        }
        isSearching = true
    }

    /// The rate that the streams can use from now on.
    mutating func setDemand(_ demand: Double) { self.demand = demand }

    private var isWanting: Bool { heard != nil && newest < demand }

    /// The padding to send from now on, and when that changes without another estimate or demand.
    func padding(now: MonotonicTime) -> (padding: Padding, until: MonotonicTime) {
        guard isWanting, let heard else { return (.none, .never) }
        let begins = heard + Self.silence
        guard now >= begins else { return (isSearching ? .full : .none, begins) }
        let rest = Self.rest.nanoseconds
        let round = begins + TimeInterval(nanoseconds: (now - begins).nanoseconds / rest * rest)
        return now - round < Self.question ? (.least, round + Self.question) : (.none, round + Self.rest)
    }
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
