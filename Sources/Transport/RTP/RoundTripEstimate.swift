/// Smoothed round trip time and its variation (RFC 6298, section 2).
public struct RoundTripEstimate: Sendable, Equatable {
    public private(set) var smoothed: TimeInterval?
    public private(set) var variation = TimeInterval.zero

    public init() {}

    public mutating func add(_ sample: TimeInterval) {
        guard sample >= .zero else { return }
        guard let before = smoothed else {
            smoothed = sample
            variation = sample / 2
            return
        }
        let deviation = TimeInterval(nanoseconds: abs((sample - before).nanoseconds))
        variation = variation + (deviation - variation) / 4
        smoothed = before + (sample - before) / 8
    }

    /// Adds a sample that may span a stall of one of the ends, which lengthens it. It counts little more than the timeout,
    /// which soon follows a path that became longer. An estimate that began with a stall begins again.
    public mutating func addDespiteStalls(_ sample: TimeInterval) {
        guard sample >= .zero, let smoothed, let timeout else { return add(sample) }
        if sample < smoothed / 4 { self = RoundTripEstimate() }
        add(min(sample, timeout + Self.step))
    }

    private static let step = TimeInterval.milliseconds(50)

    /// How long to wait for a response before another request. Responses are seldom later than this.
    public var timeout: TimeInterval? { smoothed.map { $0 + variation * 4 } }
}

/// Round trip time as measured by NACKs and their responses.
public struct RepairRoundTrip: Sendable, Equatable {
    /// After this many consecutive ambiguous responses, the estimate counts as too short.
    static let toleratedAmbiguity = 4

    public private(set) var estimate = RoundTripEstimate()
    private var ambiguous = 0

    public init() {}

    /// Records a response to something requested `tries` times. Only a response to a single request measures the time
    /// exactly (Karn's rule). But while the estimate is shorter than the round trip, everything is requested twice.
    /// Then the time since the first request is used, which is too long at worst, and later responses correct it.
    ///
    /// - Parameter wasGivenUp: whether the response came so late that something else may have delayed it.
    public mutating func answered(
        tries: Int, firstAsked: MonotonicTime, now: MonotonicTime, wasGivenUp: Bool = false
    ) {
        guard tries > 0 else { return }
        ambiguous = tries == 1 ? 0 : ambiguous + 1
        guard tries == 1 || estimate.smoothed == nil || ambiguous > Self.toleratedAmbiguity else { return }
        if wasGivenUp {
            estimate.addDespiteStalls(now - firstAsked)
        } else {
            estimate.add(now - firstAsked)
        }
    }
}
